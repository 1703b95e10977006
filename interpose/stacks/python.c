/* python.c: reads the Python frames of a thread and emits them in front of its native stack. */
#include "interpose/stacks/python.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/real/resolve.h"
#include "interpose/ring/emit.h"
#include "interpose/stacks/stacks.h"
#include "lib/python/peek.h"
#include "lib/python/python_read.h"
#include "interpose/shim/environment.h"

enum { FAILURES_MAX = 64, INTERPRETERS = 16, PTHREAD_SEARCHED = 2048, BACKWARD_THREADS = 64 };
/* In calls that come in thousands (stacks_may_look_up). */
enum { NEW_STACK_WEIGHT = 32, BACKWARD_WEIGHT = 8 };

static struct python {
    bool found;
    _Atomic bool proven;   /* a checked walk found everything as the layout says */
    _Atomic int failures;  /* walks before that which did not */
    _Atomic int id_offset; /* where glibc keeps the kernel's thread id in what a pthread_t points
                              to; 0 not known yet */
    _Atomic uint64_t backward_code, backward_state; /* of what was last found in backward() */
    struct python_memory memory;
    int (*is_initialized)(void);
    void *(*this_thread)(void);
    void *(*first_interpreter)(void);
    void *(*next_interpreter)(void *interpreter);
    void *(*first_thread)(void *interpreter);
} python;

/* "3.11.7 (main, ...": Py_Version is there from 3.11 on only. */
static uint32_t parse_version(const char *text)
{
    uint32_t version = 0;
    for (int i = 0; i < 3; i++) {
        char *end;
        version = version << 8 | (uint32_t)strtoul(text, &end, 10);
        text = *end == '.' ? end + 1 : end;
    }
    return version << 8;
}

static bool find_functions(resolve_dlsym_function *find)
{
    *(void **)&python.is_initialized = find(RTLD_DEFAULT, "Py_IsInitialized");
    *(void **)&python.this_thread = find(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    *(void **)&python.first_interpreter = find(RTLD_DEFAULT, "PyInterpreterState_Head");
    *(void **)&python.next_interpreter = find(RTLD_DEFAULT, "PyInterpreterState_Next");
    *(void **)&python.first_thread = find(RTLD_DEFAULT, "PyInterpreterState_ThreadHead");
    python.memory.code_type = (uintptr_t)find(RTLD_DEFAULT, "PyCode_Type");
    python.memory.str_type = (uintptr_t)find(RTLD_DEFAULT, "PyUnicode_Type");
    python.memory.bytes_type = (uintptr_t)find(RTLD_DEFAULT, "PyBytes_Type");
    return python.is_initialized && python.this_thread && python.first_interpreter &&
           python.next_interpreter && python.first_thread && python.memory.code_type &&
           python.memory.str_type && python.memory.bytes_type;
}

bool python_start(void)
{
    python.found = false;
    if (shim.stacks == STACKS_OFF || !peek_start())
        return true;
#if __SIZEOF_POINTER__ == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    resolve_dlsym_function *find = resolve_dlsym();
    const char *setting = environment_get("DDPCHECK_PYSTACK");
    if (!find || (setting && !strcmp(setting, "off")))
        return true;
    const char *(*get_version)(void);
    *(void **)&get_version = find(RTLD_DEFAULT, "Py_GetVersion");
    if (!get_version || !find_functions(find))
        return true;
    const uint32_t *hex = find(RTLD_DEFAULT, "Py_Version");
    uint32_t version = hex ? *hex : parse_version(get_version());
    python.found =
        python_layout_find(&python.memory.layout, version, find(RTLD_DEFAULT, "_PyRuntime"));
#endif
    return true;
}

struct stack_lines {
    uint64_t file[PYTHON_STACK_FRAMES], function[PYTHON_STACK_FRAMES];
    uint32_t line[PYTHON_STACK_FRAMES];
};

static bool emit_python_stack(struct shim_thread *thread, uint64_t id, uint64_t native,
                              const struct stack_lines *lines, uint32_t count)
{
    enum { PIECE = sizeof((struct record *)0)->python.file / sizeof(uint64_t) };
    bool appended = true;
    for (uint32_t offset = 0; offset < count; offset += PIECE) {
        struct record record = {
            .python = {
                .id = id, .native = native, .count = (uint16_t)count, .offset = (uint16_t)offset}};
        for (uint32_t i = 0; i < PIECE && offset + i < count; i++) {
            record.python.file[i] = lines->file[offset + i];
            record.python.function[i] = lines->function[offset + i];
            record.python.line[i] = lines->line[offset + i];
        }
        appended &= emit_notice(thread, &record, API_notice_python_stack);
    }
    return appended;
}

static uint64_t python_stack_id(uint64_t native, const struct stack_lines *lines, uint32_t count)
{
    uint64_t words[1 + 3 * PYTHON_STACK_FRAMES];
    uint32_t at = 0;
    words[at++] = native;
    for (uint32_t i = 0; i < count; i++) {
        words[at++] = lines->file[i];
        words[at++] = lines->function[i];
        words[at++] = lines->line[i];
    }
    return string_id((const char *)words, at * sizeof *words);
}

/* Emits a stack once. *sound becomes false if a frame is none. Returns its id. */
static uint64_t emit_frames(struct shim_thread *thread, bool trusted, uint64_t native,
                            const struct python_frame *frames, uint32_t count, bool *sound)
{
    struct stack_lines lines;
    uint32_t known = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct python_place place;
        if (!python_place(&python.memory, trusted, &frames[i], &place)) {
            *sound = false;
            continue;
        }
        lines.file[known] = emit_string(thread, place.file, place.file_bytes);
        lines.function[known] = emit_string(thread, place.function, place.function_bytes);
        lines.line[known++] = place.line;
    }
    if (!known)
        return native;
    uint64_t id = python_stack_id(native, &lines, known);
    if (!known_has(&stacks_emitted, id) && emit_python_stack(thread, id, native, &lines, known))
        known_add(&stacks_emitted, id);
    return id;
}

/* A stack that this thread has recorded, by the key of its frames; else recorded now. */
static uint64_t cached_stack(struct shim_thread *thread, bool trusted, uint64_t key,
                             uint64_t native, const struct python_frame *frames, uint32_t count,
                             bool sparing)
{
    bool sound;
    uint64_t *entry = thread->caches->python[key % PYTHON_CACHE];
    if (entry[0] == key && known_has(&stacks_emitted, entry[1]))
        return entry[1];
    if (sparing && !stacks_may_look_up(thread, NEW_STACK_WEIGHT))
        return native;
    entry[1] = emit_frames(thread, trusted, native, frames, count, &sound);
    entry[0] = key;
    return entry[1];
}

/* torch/autograd/graph.py from PyTorch 2.3 on, torch/autograd/__init__.py before: while their
 * functions run, threads of their own (Engine::thread_main) make the calls of the backward pass. */
static bool is_backward(const struct python_place *place)
{
    static const char *const files[] = {"torch/autograd/graph.py", "torch/autograd/__init__.py"};
    static const char *const functions[] = {"_engine_run_backward", "backward", "grad"};
    bool in_file = false, in_function = false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t bytes = strlen(files[i]);
        in_file |= place->file_bytes >= bytes &&
                   !memcmp(place->file + place->file_bytes - bytes, files[i], bytes);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        in_function |= place->function_bytes == strlen(functions[i]) &&
                       !memcmp(place->function, functions[i], place->function_bytes);
    return in_file && in_function;
}

/* The frames of a thread that is in backward(); none if this one is not. */
static uint32_t frames_of_backward(uint64_t state, struct python_frame *frames)
{
    struct python_place place;
    bool sound;
    uint32_t count = python_walk(&python.memory, false, state, frames, PYTHON_STACK_FRAMES, &sound);
    if (!count || !sound)
        return 0;
    if (frames[0].code == atomic_load_explicit(&python.backward_code, memory_order_relaxed))
        return count;
    if (!python_place(&python.memory, false, &frames[0], &place) || !is_backward(&place))
        return 0;
    atomic_store_explicit(&python.backward_code, frames[0].code, memory_order_relaxed);
    return count;
}

static uint32_t find_backward(struct python_frame *frames)
{
    struct python_thread threads[BACKWARD_THREADS];
    uint64_t last = atomic_load_explicit(&python.backward_state, memory_order_relaxed);
    uint32_t count = last ? frames_of_backward(last, frames) : 0;
    uint32_t found = count ? 0 : python_threads(threads, BACKWARD_THREADS);
    for (uint32_t i = 0; i < found && !count; i++) {
        count = frames_of_backward(threads[i].state, frames);
        if (count)
            atomic_store_explicit(&python.backward_state, threads[i].state, memory_order_relaxed);
    }
    return count;
}

/* Threads of autograd have a thread state and no frames (python_engine.cpp, thread_init). All of
 * another thread's frames is read with checks: it may return meanwhile. */
static uint64_t stack_of_backward(struct shim_thread *thread, uint64_t native, bool sparing)
{
    struct python_frame frames[PYTHON_STACK_FRAMES];
    if (sparing && !stacks_may_look_up(thread, BACKWARD_WEIGHT))
        return native;
    uint32_t count = find_backward(frames);
    uint64_t key = count ? python_checked_key(&python.memory, frames, count) : 0;
    return key ? cached_stack(thread, false, key ^ native, native, frames, count, sparing) : native;
}

/* A thread that Python started has threading.py at its outermost frame, the main thread the
 * program. What else has frames was called by native code: autograd's threads run the hooks of
 * FSDP, of Tensor.register_hook and of communication hooks. */
static bool is_hook_thread(const struct shim_thread *thread, const struct python_frame *outermost)
{
    static const char start[] = "_bootstrap";
    struct python_place place;
    return thread->id != (uint32_t)getpid() &&
           python_place(&python.memory, false, outermost, &place) &&
           (place.function_bytes != sizeof start - 1 ||
            memcmp(place.function, start, sizeof start - 1) != 0);
}

/* The hook's frames, and beyond them those of the thread that called backward(): the program's own
 * line is often there alone. 0: this is no hook, or nobody is in backward(). */
static uint64_t stack_of_hook(struct shim_thread *thread, uint64_t native,
                              struct python_frame frames[static PYTHON_STACK_FRAMES],
                              uint32_t count, bool sparing)
{
    struct python_frame caller[PYTHON_STACK_FRAMES];
    if (count == PYTHON_STACK_FRAMES || !is_hook_thread(thread, &frames[count - 1]) ||
        (sparing && !stacks_may_look_up(thread, BACKWARD_WEIGHT)))
        return 0;
    uint32_t callers = find_backward(caller);
    if (callers > PYTHON_STACK_FRAMES - count)
        callers = PYTHON_STACK_FRAMES - count;
    if (!callers)
        return 0;
    memcpy(frames + count, caller, callers * sizeof *caller);
    uint64_t key = python_checked_key(&python.memory, frames, count + callers);
    return key ? cached_stack(thread, false, key ^ native, native, frames, count + callers, sparing)
               : 0;
}

uint64_t python_this_thread(void)
{
    return python.found && python.is_initialized() ? (uintptr_t)python.this_thread() : 0;
}

bool python_is_multiprocessing(void)
{
    static const char package[] = "/multiprocessing/";
    struct python_frame frame;
    struct python_place place;
    bool sound;
    uint64_t state = python_this_thread();
    return state && python_walk(&python.memory, false, state, &frame, 1, &sound) &&
           python_place(&python.memory, false, &frame, &place) &&
           memmem(place.file, place.file_bytes, package, strlen(package));
}

/* Outside the finalisation of Python this thread's state and frames are its own: nobody else
 * changes or frees them, whether or not it has the GIL. */
uint64_t python_stack(struct shim_thread *thread, uint64_t native, bool sparing)
{
    uint64_t state = python_this_thread();
    if (!state)
        return native;
    struct python_frame frames[PYTHON_STACK_FRAMES];
    bool trusted = atomic_load_explicit(&python.proven, memory_order_relaxed), sound;
    uint32_t count =
        python_walk(&python.memory, trusted, state, frames, PYTHON_STACK_FRAMES, &sound);
    if (!count && sound)
        return stack_of_backward(thread, native, sparing);
    uint64_t hook = count && sound ? stack_of_hook(thread, native, frames, count, sparing) : 0;
    if (hook)
        return hook;
    if (trusted)
        return cached_stack(thread, true, python_walk_key(&python.memory, frames, count) ^ native,
                            native, frames, count, sparing);
    uint64_t id = emit_frames(thread, false, native, frames, count, &sound);
    if (sound)
        atomic_store_explicit(&python.proven, true, memory_order_relaxed);
    else if (atomic_fetch_add(&python.failures, 1) == FAILURES_MAX)
        python.found = false; /* not the build that it seems to be */
    return id;
}

uint64_t python_stack_of(struct shim_thread *thread, uint64_t state, uint64_t native)
{
    struct python_frame frames[PYTHON_STACK_FRAMES];
    bool sound;
    uint32_t count = python_walk(&python.memory, false, state, frames, PYTHON_STACK_FRAMES, &sound);
    return count ? emit_frames(thread, false, native, frames, count, &sound) : native;
}

const struct python_memory *python_memory(void)
{
    return python.found ? &python.memory : NULL;
}

uint64_t python_stack_of_frames(struct shim_thread *thread, const struct python_frame *frames,
                                uint32_t count)
{
    bool sound;
    return count ? emit_frames(thread, false, 0, frames, count, &sound) : 0;
}

/* Found in the calling thread's own; 0 not found. */
static int find_id_offset(void)
{
    unsigned char bytes[PTHREAD_SEARCHED];
    int32_t id = (int32_t)syscall(SYS_gettid);
    int offset = python.id_offset;
    if (offset || !python_read(false, (uintptr_t)pthread_self(), bytes, sizeof bytes))
        return offset;
    for (int at = sizeof id; at + (int)sizeof id <= PTHREAD_SEARCHED; at += (int)sizeof id)
        if (!memcmp(bytes + at, &id, sizeof id)) {
            python.id_offset = offset = at;
            break;
        }
    return offset;
}

static uint32_t thread_id_of(uint64_t state)
{
    const struct python_layout *layout = &python.memory.layout;
    uint64_t id = 0, pthread = 0;
    if (layout->native_id != PYTHON_NONE)
        return python_read(false, state + layout->native_id, &id, sizeof id) ? (uint32_t)id : 0;
    int offset = find_id_offset();
    int32_t found = 0;
    if (!offset || !python_read(false, state + layout->thread_id, &pthread, sizeof pthread) ||
        !python_read(false, pthread + (uint64_t)offset, &found, sizeof found))
        return 0;
    return (uint32_t)found;
}

uint32_t python_threads(struct python_thread *threads, uint32_t max)
{
    uint32_t count = 0;
    if (!python.found || !python.is_initialized())
        return 0;
    void *interpreter = python.first_interpreter();
    for (int i = 0; interpreter && i < INTERPRETERS; i++) {
        uint64_t state = (uintptr_t)python.first_thread(interpreter);
        while (state && count < max) {
            threads[count++] = (struct python_thread){.state = state, .id = thread_id_of(state)};
            if (!python_read(false, state + python.memory.layout.thread_next, &state, sizeof state))
                break;
        }
        interpreter = python.next_interpreter(interpreter);
    }
    return count;
}
