/* python.c: Python frames in front of native stacks. See python.h. */
#include "interpose/stacks/python.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/record/emit.h"
#include "lib/python/python_read.h"
#include "interpose/calls/resolve.h"

enum { FRAMES = 32, FAILURES_MAX = 64, INTERPRETERS = 16, PTHREAD_SEARCHED = 2048 };

static struct python {
    bool found;
    _Atomic bool proven;  /* a checked walk found everything as the layout says */
    _Atomic int failures; /* walks before that which did not */
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

void python_start(void)
{
#if __SIZEOF_POINTER__ == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    resolve_dlsym_function *find = resolve_dlsym();
    const char *wish = getenv("DDPCHECK_PYSTACK");
    python.found = false;
    if (!find || (wish && !strcmp(wish, "off")))
        return;
    const char *(*get_version)(void);
    *(void **)&get_version = find(RTLD_DEFAULT, "Py_GetVersion");
    if (!get_version || !find_functions(find))
        return;
    const uint32_t *hex = find(RTLD_DEFAULT, "Py_Version");
    uint32_t version = hex ? *hex : parse_version(get_version());
    python.found =
        python_layout_find(&python.memory.layout, version, find(RTLD_DEFAULT, "_PyRuntime"));
#endif
}

struct places {
    uint64_t file[FRAMES], function[FRAMES];
    uint32_t line[FRAMES];
};

static bool tell_pieces(struct thread *thread, uint64_t id, uint64_t native,
                        const struct places *places, uint32_t count)
{
    enum { PIECE = sizeof((struct record *)0)->python.file / sizeof(uint64_t) };
    bool told = true;
    for (uint32_t offset = 0; offset < count; offset += PIECE) {
        struct record record = {
            .python = {
                .id = id, .native = native, .count = (uint16_t)count, .offset = (uint16_t)offset}};
        for (uint32_t i = 0; i < PIECE && offset + i < count; i++) {
            record.python.file[i] = places->file[offset + i];
            record.python.function[i] = places->function[offset + i];
            record.python.line[i] = places->line[offset + i];
        }
        told &= emit_notice(thread, &record, API_notice_python_stack);
    }
    return told;
}

static uint64_t stack_id(uint64_t native, const struct places *places, uint32_t count)
{
    uint64_t words[1 + 3 * FRAMES];
    uint32_t at = 0;
    words[at++] = native;
    for (uint32_t i = 0; i < count; i++) {
        words[at++] = places->file[i];
        words[at++] = places->function[i];
        words[at++] = places->line[i];
    }
    return string_id((const char *)words, at * sizeof *words);
}

/* Tells the collector of a stack once. *sound becomes false if a frame is none. Returns its id. */
static uint64_t tell(struct thread *thread, bool trusted, uint64_t native,
                     const struct python_frame *frames, uint32_t count, bool *sound)
{
    struct places places;
    uint32_t known = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct python_place place;
        if (!python_place(&python.memory, trusted, &frames[i], &place)) {
            *sound = false;
            continue;
        }
        places.file[known] = emit_string(thread, place.file, place.file_bytes);
        places.function[known] = emit_string(thread, place.function, place.function_bytes);
        places.line[known++] = place.line;
    }
    if (!known)
        return native;
    uint64_t id = stack_id(native, &places, known);
    if (!known_has(&shim.known_stacks, id) && tell_pieces(thread, id, native, &places, known))
        known_add(&shim.known_stacks, id);
    return id;
}

/* Outside the finalisation of Python this thread's state and frames are its own: nobody else
 * changes or frees them, whoever has the GIL. */
uint64_t python_stack(struct thread *thread, uint64_t native)
{
    if (!python.found || !python.is_initialized())
        return native;
    uint64_t state = (uintptr_t)python.this_thread();
    if (!state)
        return native;
    struct python_frame frames[FRAMES];
    bool trusted = atomic_load_explicit(&python.proven, memory_order_relaxed), sound;
    uint32_t count = python_walk(&python.memory, trusted, state, frames, FRAMES, &sound);
    if (!count && sound)
        return native;
    if (!trusted) {
        uint64_t id = tell(thread, false, native, frames, count, &sound);
        if (sound)
            atomic_store_explicit(&python.proven, true, memory_order_relaxed);
        else if (atomic_fetch_add(&python.failures, 1) == FAILURES_MAX)
            python.found = false; /* not the build that it seems to be */
        return id;
    }
    uint64_t key = python_walk_key(&python.memory, frames, count) ^ native;
    uint64_t *entry = thread->caches->python[key % PYTHON_CACHE];
    if (entry[0] != key || !known_has(&shim.known_stacks, entry[1])) {
        entry[1] = tell(thread, true, native, frames, count, &sound);
        entry[0] = key;
    }
    return entry[1];
}

uint64_t python_stack_of(struct thread *thread, uint64_t state, uint64_t native)
{
    struct python_frame frames[FRAMES];
    bool sound;
    uint32_t count = python_walk(&python.memory, false, state, frames, FRAMES, &sound);
    return count ? tell(thread, false, native, frames, count, &sound) : native;
}

/* Where glibc keeps the kernel's thread id in what a pthread_t points to: seen on the calling
 * thread's own. */
static int find_id_place(void)
{
    static _Atomic int place = -1;
    unsigned char bytes[PTHREAD_SEARCHED];
    int32_t id = (int32_t)syscall(SYS_gettid);
    if (place >= 0 || !python_read(false, (uintptr_t)pthread_self(), bytes, sizeof bytes))
        return place;
    for (int at = 0; at + (int)sizeof id <= PTHREAD_SEARCHED; at += (int)sizeof id)
        if (!memcmp(bytes + at, &id, sizeof id)) {
            place = at;
            break;
        }
    return place;
}

static uint32_t thread_id_of(uint64_t state)
{
    const struct python_layout *layout = &python.memory.layout;
    uint64_t id = 0, pthread = 0;
    if (layout->native_id != PYTHON_NONE)
        return python_read(false, state + layout->native_id, &id, sizeof id) ? (uint32_t)id : 0;
    int place = find_id_place();
    int32_t found = 0;
    if (place < 0 || !python_read(false, state + layout->thread_id, &pthread, sizeof pthread) ||
        !python_read(false, pthread + (uint64_t)place, &found, sizeof found))
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
