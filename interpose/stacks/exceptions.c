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
#include "interpose/stacks/stacks.h"
#include "lib/python/python_exception.h"

enum { TYPE_BYTES = 128, VALUE_OF_EVENT = 2 };

typedef int audit_function(const char *event, void *arguments, void *context);

static struct {
    _Atomic bool hooked; /* the interpreter keeps the hook in a child of a fork */
    _Atomic bool watched;
    _Atomic int watcher; /* the rank's process, not a child of it; 0: it is none */
    bool (*start)(void);
    _Atomic bool uncaught_recorded, shutdown_recorded;
    _Atomic uint64_t handled_recorded; /* the exception that was recorded last */
    int (*add_hook)(audit_function *hook, void *context);
    void *(*tuple_item)(void *tuple, intptr_t index);
    int (*is_shutting_down)(void);
} exceptions;

/* `exception` 0: not known. */
static bool emit_exception(struct shim_thread *thread, uint64_t exception, enum exception_how how)
{
    struct python_frame frames[PYTHON_STACK_FRAMES];
    char type[TYPE_BYTES];
    struct record record = {.range = {.id = how}};
    const struct python_memory *memory = python_memory();
    uint32_t bytes = exception ? python_exception_type(exception, type, sizeof type) : 0;
    if (bytes)
        record.range.text = emit_string(thread, type, bytes);
    if (bytes)
        record.stack = python_stack_of_frames(
            thread, frames,
            python_exception_frames(memory, exception, frames, PYTHON_STACK_FRAMES));
    return emit_notice(thread, &record, API_notice_exception);
}

static bool start_for_exceptions(void)
{
    uint32_t state = atomic_load(&shim.state);
    if (state != SHIM_DORMANT)
        return state == SHIM_ACTIVE;
    return atomic_load(&exceptions.watcher) == getpid() && exceptions.start();
}

/* The thread has the GIL, so that nobody changes the exception. */
static void record_uncaught(uint64_t exception)
{
    struct shim_thread *thread = &thread_self;
    if (thread->inside)
        return;
    thread->inside = 1;
    int error = errno;
    if (start_for_exceptions() && python_memory() && (thread->attached || attach_thread(thread)) &&
        emit_exception(thread, exception, EXCEPTION_UNCAUGHT))
        atomic_store(&exceptions.uncaught_recorded, true);
    errno = error;
    thread->inside = 0;
}

/* The event's arguments: hook, type, exception, traceback. */
static int see_audit_event(const char *event, void *arguments, void *context)
{
    (void)context;
    if (!strcmp(event, "sys.excepthook") && arguments)
        record_uncaught((uintptr_t)exceptions.tuple_item(arguments, VALUE_OF_EVENT));
    return 0;
}

/* In Python's main thread, which has the GIL then: hooks may be added by such a thread alone. */
static int add_audit_hook(void *unused)
{
    (void)unused;
    exceptions.add_hook(see_audit_event, NULL);
    return 0;
}

static void hook_exceptions(void)
{
    resolve_dlsym_function *find = resolve_dlsym();
    int (*call_later)(int (*function)(void *), void *argument), (*is_initialized)(void) = NULL;
    if (find)
        *(void **)&is_initialized = find(RTLD_DEFAULT, "Py_IsInitialized");
    /* A program may be linked with Python and not have begun, or have ended, an interpreter. */
    if (!is_initialized || !is_initialized() || atomic_exchange(&exceptions.hooked, true))
        return;
    *(void **)&call_later = find(RTLD_DEFAULT, "Py_AddPendingCall");
    *(void **)&exceptions.add_hook = find(RTLD_DEFAULT, "PySys_AddAuditHook");
    *(void **)&exceptions.tuple_item = find(RTLD_DEFAULT, "PyTuple_GetItem");
    *(void **)&exceptions.is_shutting_down = find(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!exceptions.is_shutting_down)
        *(void **)&exceptions.is_shutting_down = find(RTLD_DEFAULT, "_Py_IsFinalizing");
    if (!call_later || !exceptions.add_hook || !exceptions.tuple_item ||
        call_later(add_audit_hook, NULL) != 0)
        atomic_store(&exceptions.hooked, false);
}

bool exceptions_start(void)
{
    if (python_memory())
        hook_exceptions();
    return true;
}

void exceptions_watch(bool (*start)(void))
{
    if (atomic_load_explicit(&exceptions.watched, memory_order_relaxed) ||
        atomic_exchange(&exceptions.watched, true))
        return;
    const char *disable = environment_get("DDPCHECK_DISABLE");
    if ((disable && !strcmp(disable, "1")) || !process_is_rank())
        return;
    exceptions.start = start;
    atomic_store(&exceptions.watcher, getpid());
    hook_exceptions();
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

/* A destructor ends the communicator while a C++ exception unwinds the stack. The C++ library does
 * not say of which type it is before it is caught. */
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

void exceptions_record(const struct recorded_call *call)
{
    struct shim_thread *thread = call->thread;
    record_unwinding(call);
    if (!python_memory() || atomic_load(&exceptions.uncaught_recorded))
        return;
    if (exceptions.is_shutting_down && exceptions.is_shutting_down()) {
        if (!atomic_exchange(&exceptions.shutdown_recorded, true))
            emit_exception(thread, 0, EXCEPTION_SHUTDOWN);
        return;
    }
    exceptions_record_handled(thread);
}

void exceptions_record_handled(struct shim_thread *thread)
{
    if (!python_memory() || atomic_load(&exceptions.uncaught_recorded))
        return;
    uint64_t handled = find_handled(thread);
    if (handled && atomic_exchange(&exceptions.handled_recorded, handled) != handled)
        emit_exception(thread, handled, EXCEPTION_HANDLED);
}

void exceptions_forked(void)
{
    atomic_store(&exceptions.uncaught_recorded, false);
    atomic_store(&exceptions.shutdown_recorded, false);
    atomic_store(&exceptions.handled_recorded, 0);
}
