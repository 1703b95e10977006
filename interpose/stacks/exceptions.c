/* exceptions.c: records the exceptions that end a program. See exceptions.h. */
#include "interpose/stacks/exceptions.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "interpose/real/resolve.h"
#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"
#include "interpose/ring/process.h"
#include "interpose/shim/environment.h"
#include "interpose/stacks/python.h"
#include "interpose/stacks/python_exit.h"
#include "interpose/stacks/stacks.h"
#include "lib/python/python_exception.h"

enum { TYPE_BYTES = 128, MESSAGE_BYTES = 160, VALUE_OF_EVENT = 2 };

typedef int audit_function(const char *event, void *arguments, void *context);

static struct {
    _Atomic bool hooked; /* the interpreter keeps the hook in a child of a fork */
    _Atomic bool watched;
    _Atomic int watcher; /* the rank's process, not a child of it; 0: it is none */
    bool (*start)(void);
    _Atomic bool uncaught_recorded, shutdown_recorded;
    _Atomic uint64_t handled_recorded, caught_recorded; /* the exceptions that were recorded last */
    int (*add_hook)(audit_function *hook, void *context);
    void *(*tuple_item)(void *tuple, intptr_t index);
    int (*is_shutting_down)(void);
} exceptions;

/* "ValueError: a sample is broken", or the type alone. Returns the bytes, 0 if it is no exception.
 */
static uint32_t exception_text(uint64_t exception, char text[TYPE_BYTES + MESSAGE_BYTES])
{
    static const char between[] = ": ", cut[] = "...";
    uint32_t type = exception ? python_exception_type(exception, text, TYPE_BYTES) : 0;
    char *message = text + type + strlen(between);
    uint32_t room = MESSAGE_BYTES - sizeof between - sizeof cut;
    uint32_t bytes = type ? python_exception_message(python_memory(), exception, message, room) : 0;
    if (!bytes)
        return type;
    memcpy(text + type, between, strlen(between));
    if (bytes == room) {
        memcpy(message + bytes, cut, strlen(cut));
        bytes += strlen(cut);
    }
    return type + (uint32_t)strlen(between) + bytes;
}

/* `exception` 0: not known. */
static struct record describe_exception(struct shim_thread *thread, uint64_t exception,
                                        enum exception_how how)
{
    struct python_frame frames[PYTHON_STACK_FRAMES];
    char text[TYPE_BYTES + MESSAGE_BYTES];
    struct record record = {.range = {.id = how}};
    const struct python_memory *memory = python_memory();
    uint32_t bytes = exception_text(exception, text);
    if (bytes)
        record.range.text = emit_said(thread, text, bytes);
    if (bytes)
        record.stack = python_stack_of_frames(
            thread, frames,
            python_exception_frames(memory, exception, frames, PYTHON_STACK_FRAMES));
    return record;
}

static bool emit_exception(struct shim_thread *thread, uint64_t exception, enum exception_how how)
{
    struct record record = describe_exception(thread, exception, how);
    return emit_notice(thread, &record, API_notice_exception);
}

bool exceptions_attach(struct shim_thread *thread)
{
    uint32_t state = atomic_load(&shim.state);
    bool starts = state == SHIM_DORMANT && atomic_load(&exceptions.watcher) == getpid();
    return (state == SHIM_ACTIVE || (starts && exceptions.start())) && python_memory() &&
           (thread->attached || attach_thread(thread));
}

/* The thread has the GIL, so that nobody changes the exception. */
static void record_uncaught(uint64_t exception)
{
    struct shim_thread *thread = &thread_self;
    if (thread_is_inside(thread, __builtin_frame_address(0)))
        return;
    thread_enter(thread, __builtin_frame_address(0));
    int error = errno;
    if (exceptions_attach(thread) && emit_exception(thread, exception, EXCEPTION_UNCAUGHT))
        atomic_store(&exceptions.uncaught_recorded, true);
    errno = error;
    thread->inside = 0;
}

static bool place_ends_with(const char *text, uint32_t bytes, const char *end)
{
    size_t length = strlen(end);
    return bytes >= length && !memcmp(text + bytes - length, end, length);
}

/* multiprocessing.Process catches what its function raises, prints it, and exits. */
static bool ends_process(uint64_t exception)
{
    struct python_frame frame;
    struct python_place place;
    return python_exception_catcher(python_memory(), exception, &frame) &&
           python_place(python_memory(), false, &frame, &place) &&
           place_ends_with(place.function, place.function_bytes, "_bootstrap") &&
           place_ends_with(place.file, place.file_bytes, "multiprocessing/process.py");
}

/* The thread reads lines of sources, as Python's traceback does, or logs. */
static bool shows_exception(uint64_t state)
{
    static const char *const files[] = {"/linecache.py", "/logging/__init__.py"};
    enum { FRAMES = 4 };
    struct python_frame frames[FRAMES];
    struct python_place place;
    bool sound;
    uint32_t count = python_walk(python_memory(), false, state, frames, FRAMES, &sound);
    for (uint32_t i = 0; i < count; i++)
        if (python_place(python_memory(), false, &frames[i], &place) &&
            (place_ends_with(place.file, place.file_bytes, files[0]) ||
             place_ends_with(place.file, place.file_bytes, files[1])))
            return true;
    return false;
}

/* Python keeps the lines that it has read: a traceback of a file that it has read is seen only if
 * it is logged. */
static void record_caught(struct shim_thread *thread, uint64_t exception)
{
    if (!atomic_load(&exceptions.uncaught_recorded) &&
        atomic_exchange(&exceptions.caught_recorded, exception) != exception)
        emit_exception(thread, exception, EXCEPTION_CAUGHT);
}

/* A file is opened, maybe one whose lines a traceback shows; or logging looks who calls. */
static void record_shown(void)
{
    struct shim_thread *thread = &thread_self;
    uint64_t state = atomic_load(&shim.state) == SHIM_ACTIVE &&
                             !thread_is_inside(thread, __builtin_frame_address(0))
                         ? python_this_thread()
                         : 0;
    uint64_t exception = state ? python_exception_handled(python_memory(), state) : 0;
    bool ends = exception && ends_process(exception);
    if (!exception || (!ends && !shows_exception(state)))
        return;
    thread_enter(thread, __builtin_frame_address(0));
    int error = errno;
    if (exceptions_attach(thread) && ends)
        exceptions_record_handled(thread);
    else if (!ends && thread->attached)
        record_caught(thread, exception);
    errno = error;
    thread->inside = 0;
}

/* The arguments of sys.excepthook: hook, type, exception, traceback. cpython.run_*: the program
 * begins, in the main thread. */
static int see_audit_event(const char *event, void *arguments, void *context)
{
    static const char begins[] = "cpython.run_";
    (void)context;
    if (!strcmp(event, "sys.excepthook") && arguments)
        record_uncaught((uintptr_t)exceptions.tuple_item(arguments, VALUE_OF_EVENT));
    else if (!strcmp(event, "open") || !strcmp(event, "sys._getframe"))
        record_shown();
    else if (!strncmp(event, begins, strlen(begins)))
        python_exit_watch();
    return 0;
}

/* In Python's main thread, which has the GIL then: hooks may be added by such a thread alone. */
static int add_audit_hook(void *unused)
{
    (void)unused;
    exceptions.add_hook(see_audit_event, NULL);
    python_exit_watch();
    return 0;
}

static bool may_run_python(void)
{
    resolve_dlsym_function *find = resolve_dlsym();
    return find && find(RTLD_DEFAULT, "Py_IsInitialized");
}

/* `is_loading`: the process's libraries are being loaded; main comes later. */
static void hook_exceptions(bool is_loading)
{
    resolve_dlsym_function *find = resolve_dlsym();
    int (*call_later)(int (*function)(void *), void *argument), (*is_initialized)(void) = NULL;
    if (find)
        *(void **)&is_initialized = find(RTLD_DEFAULT, "Py_IsInitialized");
    /* A program may be linked with Python and have ended its interpreter, or never begin one.
     * Before it begins a hook can be added at once. */
    bool is_running = is_initialized && is_initialized();
    if (!is_initialized || (!is_running && !is_loading) ||
        atomic_exchange(&exceptions.hooked, true))
        return;
    *(void **)&call_later = find(RTLD_DEFAULT, "Py_AddPendingCall");
    *(void **)&exceptions.add_hook = find(RTLD_DEFAULT, "PySys_AddAuditHook");
    *(void **)&exceptions.tuple_item = find(RTLD_DEFAULT, "PyTuple_GetItem");
    *(void **)&exceptions.is_shutting_down = find(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!exceptions.is_shutting_down)
        *(void **)&exceptions.is_shutting_down = find(RTLD_DEFAULT, "_Py_IsFinalizing");
    bool is_complete = call_later && exceptions.add_hook && exceptions.tuple_item;
    if (is_complete && !is_running)
        exceptions.add_hook(see_audit_event, NULL);
    else if (!is_complete || call_later(add_audit_hook, NULL) != 0)
        atomic_store(&exceptions.hooked, false);
}

bool exceptions_start(void)
{
    if (python_memory())
        hook_exceptions(false);
    return true;
}

static bool is_disabled(void)
{
    const char *disable = environment_get("DDPCHECK_DISABLE");
    return disable && !strcmp(disable, "1");
}

static void watch(bool (*start)(void), bool is_loading)
{
    exceptions.start = start;
    atomic_store(&exceptions.watcher, getpid());
    hook_exceptions(is_loading);
}

void exceptions_watch_from_load(bool (*start)(void))
{
    if (is_disabled() || !process_is_rank() || !may_run_python())
        return;
    bool is_certain = process_is_only_rank();
    process_mark_rank();
    if (!is_certain)
        return;
    watch(start, true);
    atomic_store(&exceptions.watched, atomic_load(&exceptions.hooked));
}

void exceptions_watch(bool (*start)(void))
{
    if (atomic_load_explicit(&exceptions.watched, memory_order_relaxed) ||
        atomic_exchange(&exceptions.watched, true))
        return;
    if (!is_disabled() && process_is_rank())
        watch(start, false);
}

/* Of the calling thread, else of the main thread, which waits for the calling one if that is of
 * PyTorch. */
static uint64_t find_handled(const struct shim_thread *thread)
{
    enum { THREADS_SEARCHED = 64 };
    struct python_thread states[THREADS_SEARCHED];
    uint32_t count = python_threads(states, THREADS_SEARCHED);
    const uint32_t ids[] = {thread->id, (uint32_t)getpid()};
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < count; k++)
            if (states[k].id == ids[i])
                return python_exception_handled(python_memory(), states[k].state);
    return 0;
}

/* A destructor ends the communicator while a C++ exception unwinds the stack. The C++ library
 * shows the exception's type only once it is caught. */
static void record_unwinding(const struct recorded_call *call)
{
    static const char name[] = "C++";
    resolve_dlsym_function *find = resolve_dlsym();
    int (*count)(void) = NULL; /* std::uncaught_exceptions */
    if (find)
        *(void **)&count = find(RTLD_DEFAULT, "_ZSt19uncaught_exceptionsv");
    if (!count || count() <= 0)
        return;
    struct record record = {.range = {.id = EXCEPTION_HANDLED}};
    record.range.text = emit_string(call->thread, name, strlen(name));
    record.stack = stacks_take(call->thread, call->site, call->frame, STACK_WHOLE);
    emit_notice(call->thread, &record, API_notice_exception);
}

bool exceptions_shutting_down(void)
{
    return exceptions.is_shutting_down && exceptions.is_shutting_down();
}

void exceptions_record(const struct recorded_call *call)
{
    struct shim_thread *thread = call->thread;
    record_unwinding(call);
    if (!python_memory() || atomic_load(&exceptions.uncaught_recorded))
        return;
    if (exceptions_shutting_down()) {
        if (!atomic_exchange(&exceptions.shutdown_recorded, true))
            emit_exception(thread, 0, EXCEPTION_SHUTDOWN);
        return;
    }
    exceptions_record_handled(thread);
}

void exceptions_record_handled(struct shim_thread *thread)
{
    struct handled_exception handled;
    exceptions_keep_handled(thread, &handled);
    exceptions_record_kept(thread, &handled);
}

void exceptions_keep_handled(struct shim_thread *thread, struct handled_exception *handled)
{
    *handled = (struct handled_exception){0};
    if (!python_memory() || atomic_load(&exceptions.uncaught_recorded))
        return;
    uint64_t exception = find_handled(thread);
    if (!exception || exception == atomic_load(&exceptions.handled_recorded))
        return;
    *handled = (struct handled_exception){
        .exception = exception,
        .record = describe_exception(thread, exception, EXCEPTION_HANDLED),
    };
}

void exceptions_record_kept(struct shim_thread *thread, const struct handled_exception *handled)
{
    struct record record = handled->record;
    bool is_new = handled->exception && !atomic_load(&exceptions.uncaught_recorded) &&
                  atomic_exchange(&exceptions.handled_recorded, handled->exception) !=
                      handled->exception;
    if (is_new)
        emit_notice(thread, &record, API_notice_exception);
}

void exceptions_forked(void)
{
    atomic_store(&exceptions.uncaught_recorded, false);
    atomic_store(&exceptions.shutdown_recorded, false);
    atomic_store(&exceptions.handled_recorded, 0);
    python_exit_forked();
}
