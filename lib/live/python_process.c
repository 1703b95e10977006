/* python_process.c: the Python frames of another process, read from its memory while it runs. */
#include "lib/live/live_internal.h"

#ifdef HAVE_LIBDW

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/python/peek.h"
#include "lib/python/python_read.h"

enum { INTERPRETERS = 16, STATES = 1024, ATTEMPTS = 5, PTHREAD_SEARCHED = 2048 };

/* Python's own objects that have to be found by name, in libpython or in a program that has Python
 * inside. */
enum object { OBJECT_RUNTIME, OBJECT_CODE, OBJECT_STR, OBJECT_BYTES, OBJECT_VERSION, OBJECTS };
static const char *const object_names[OBJECTS] = {
    "_PyRuntime", "PyCode_Type", "PyUnicode_Type", "PyBytes_Type", "Py_Version",
};

struct interpreter {
    uint64_t object[OBJECTS];
    uint32_t minor_of_file; /* of "libpython3.10.so.1.0"; 0 none */
    bool past_program;
    struct python_memory memory;
    int id_place; /* where a pthread_t has the kernel's thread id; -1 not known */
};

static int find_objects(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr start,
                        void *context)
{
    (void)user_data;
    (void)start;
    struct interpreter *interpreter = context;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name,
               *version = strstr(base, "python3.");
    bool is_program = !interpreter->past_program; /* the first module */
    interpreter->past_program = true;
    if (!version && !is_program)
        return DWARF_CB_OK;
    uint64_t found[OBJECTS] = {0};
    int count = dwfl_module_getsymtab(module);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *symbol_name =
            dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        for (int object = 0; symbol_name && symbol_name[0] != '\0' && object < OBJECTS; object++)
            if (symbol.st_shndx != SHN_UNDEF && !strcmp(symbol_name, object_names[object]))
                found[object] = address;
    }
    /* The program comes first: it may have copies of libpython's data (COPY relocations), which are
     * then the ones in use. */
    for (int object = 0; object < OBJECTS; object++)
        if (found[object] && !interpreter->object[object])
            interpreter->object[object] = found[object];
    if (version && !interpreter->minor_of_file)
        interpreter->minor_of_file = (uint32_t)strtoul(version + strlen("python3."), NULL, 10);
    return DWARF_CB_OK;
}

/* Why it can't be read; NULL if it can. */
static const char *find_layout(struct interpreter *interpreter)
{
    unsigned char said[PYTHON_SAID_BYTES];
    uint32_t version = 3u << 24 | interpreter->minor_of_file << 16;
    for (int object = 0; object <= OBJECT_BYTES; object++)
        if (!interpreter->object[object])
            return "it has no symbols to find its frames by";
    if (interpreter->object[OBJECT_VERSION] &&
        !peek(interpreter->object[OBJECT_VERSION], &version, sizeof version))
        return "its memory can't be read";
    if (!peek(interpreter->object[OBJECT_RUNTIME], said, sizeof said))
        return "its memory can't be read";
    if (!python_layout_find(&interpreter->memory.layout, version, said))
        return "ddpcheck does not know this version or build";
    interpreter->memory.code_type = interpreter->object[OBJECT_CODE];
    interpreter->memory.str_type = interpreter->object[OBJECT_STR];
    interpreter->memory.bytes_type = interpreter->object[OBJECT_BYTES];
    return NULL;
}

/* The states of all threads of all interpreters. Returns how many. */
static int list_states(const struct interpreter *interpreter, uint64_t *states, int max)
{
    const struct python_layout *layout = &interpreter->memory.layout;
    uint64_t at = 0, state = 0;
    int count = 0;
    if (!python_read(false, interpreter->object[OBJECT_RUNTIME] + layout->interpreters, &at,
                     sizeof at))
        return 0;
    for (int i = 0; at && i < INTERPRETERS; i++) {
        if (!python_read(false, at + layout->interpreter_threads, &state, sizeof state))
            return count;
        while (state && count < max) {
            states[count++] = state;
            if (!python_read(false, state + layout->thread_next, &state, sizeof state))
                break;
        }
        if (!python_read(false, at + layout->interpreter_next, &at, sizeof at))
            return count;
    }
    return count;
}

/* Up to 3.10 a state knows its pthread_t only, in which glibc keeps the kernel's id: the main
 * thread's is known. */
static int find_thread_id_offset(const struct interpreter *interpreter, int pid,
                                 const uint64_t *states, int count)
{
    unsigned char bytes[PTHREAD_SEARCHED];
    for (int i = count - 1; i >= 0; i--) {
        uint64_t pthread;
        if (!python_read(false, states[i] + interpreter->memory.layout.thread_id, &pthread,
                         sizeof pthread) ||
            !python_read(false, pthread, bytes, sizeof bytes))
            continue;
        for (int at = 0; at + (int)sizeof pid <= PTHREAD_SEARCHED; at += (int)sizeof pid)
            if (!memcmp(bytes + at, &pid, sizeof pid))
                return at;
    }
    return -1;
}

static uint32_t read_thread_id(const struct interpreter *interpreter, uint64_t state)
{
    const struct python_layout *layout = &interpreter->memory.layout;
    uint64_t id = 0, pthread = 0;
    int32_t found = 0;
    if (layout->native_id != PYTHON_NONE)
        return python_read(false, state + layout->native_id, &id, sizeof id) ? (uint32_t)id : 0;
    if (interpreter->id_place < 0 ||
        !python_read(false, state + layout->thread_id, &pthread, sizeof pthread) ||
        !python_read(false, pthread + (uint64_t)interpreter->id_place, &found, sizeof found))
        return 0;
    return (uint32_t)found;
}

/* A thread that runs changes its frames while they are read: another try then. */
static void read_frames(const struct interpreter *interpreter, uint64_t state,
                        struct live_thread *thread)
{
    struct python_frame walked[LIVE_PYTHON_FRAMES_MAX];
    bool sound = false;
    uint32_t count = 0;
    for (int i = 0; i < ATTEMPTS && !sound; i++)
        count =
            python_walk(&interpreter->memory, false, state, walked, LIVE_PYTHON_FRAMES_MAX, &sound);
    struct frame *frame = count ? live_more_frames(thread, (int)count) : NULL;
    for (uint32_t i = 0; frame && i < count; i++) {
        struct python_place place;
        if (!python_place(&interpreter->memory, false, &walked[i], &place))
            continue;
        struct frame *to = frame++;
        *to = (struct frame){.line = (int)place.line};
        snprintf(to->function, sizeof to->function, "%.*s", (int)place.function_bytes,
                 place.function);
        /* Of a path that is too long the end says more. */
        uint32_t cut = place.file_bytes < sizeof to->file
                           ? 0
                           : place.file_bytes - (uint32_t)sizeof to->file + 1;
        snprintf(to->file, sizeof to->file, "%.*s", (int)(place.file_bytes - cut),
                 place.file + cut);
        thread->frames++;
        thread->is_python = true;
    }
}

void live_read_python(struct live_process *process, Dwfl *dwfl)
{
    struct interpreter interpreter = {0};
    uint64_t states[STATES];
    dwfl_getmodules(dwfl, find_objects, &interpreter, 0);
    if (!interpreter.object[OBJECT_RUNTIME] && !interpreter.minor_of_file)
        return;
    peek_at(process->pid);
    const char *why = find_layout(&interpreter);
    if (why)
        snprintf(process->python, sizeof process->python, "%s", why);
    else {
        snprintf(process->python, sizeof process->python, "3.%u", interpreter.memory.layout.minor);
        int count = list_states(&interpreter, states, STATES);
        interpreter.id_place = find_thread_id_offset(&interpreter, process->pid, states, count);
        for (int i = 0; i < count; i++) {
            struct live_thread *thread =
                live_find_thread(process, read_thread_id(&interpreter, states[i]));
            if (thread && !thread->is_python)
                read_frames(&interpreter, states[i], thread);
        }
    }
    peek_at(0);
}

#endif
