/* aborts.c: records that native code gives up: abort(), a failed assertion, a C++ exception that
 * nobody caught; and where it calls exit(). What follows is the program's own: nothing is changed.
 *
 * A program may call these functions in a signal handler, or while another thread is stuck with a
 * lock of libc, the loader or CUDA. So the real functions are found while the process is loaded.
 * What is done here takes no lock, allocates nothing and queries neither the loader nor CUDA.
 *
 * libc's own aborts (a damaged heap) do not come through these names, and are seen as signals. */
#undef NDEBUG /* else assert.h does not declare __assert_fail */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/real/resolve.h"
#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"
#include "interpose/stacks/aborts.h"
#include "interpose/stacks/exceptions.h"
#include "interpose/stacks/python.h"
#include "interpose/stacks/python_exit.h"
#include "interpose/stacks/stacks.h"

typedef void abort_function(void);
typedef void exit_function(int status);
typedef void assert_function(const char *expression, const char *file, unsigned line,
                             const char *function);

struct type_info { /* std::type_info */
    const void *table;
    const char *name;
};
typedef struct type_info *exception_function(void);

/* What comes after us: libc's functions, or another library's. */
static struct {
    _Atomic bool found;
    abort_function *abort;
    assert_function *assert_fail;
    exit_function *exit, *exit_now, *exit_at_once; /* exit, _exit, _Exit */
    exception_function *current_exception;         /* NULL: no C++ library */
    uint64_t exit_stack;
} aborts;

void aborts_find(void)
{
    resolve_dlsym_function *find = resolve_dlsym();
    if (!find)
        return;
    *(void **)&aborts.abort = find(RTLD_NEXT, "abort");
    *(void **)&aborts.assert_fail = find(RTLD_NEXT, "__assert_fail");
    *(void **)&aborts.exit = find(RTLD_NEXT, "exit");
    *(void **)&aborts.exit_now = find(RTLD_NEXT, "_exit");
    *(void **)&aborts.exit_at_once = find(RTLD_NEXT, "_Exit");
    *(void **)&aborts.current_exception = find(RTLD_DEFAULT, "__cxa_current_exception_type");
    atomic_store(&aborts.found, true);
}

bool aborts_start(void)
{
    aborts_find(); /* a C++ library may have been loaded since the process began */
    return true;
}

/* Another library's constructor may be called before ours. */
static void find_at_first(void)
{
    if (!atomic_load(&aborts.found))
        aborts_find();
}

/* A reason as far as there is room. */
struct reason {
    char text[ABORT_EXCEPTION_BYTES];
    size_t bytes;
};

static void add_to_reason(struct reason *reason, const char *words)
{
    size_t bytes = strnlen(words, sizeof reason->text - reason->bytes);
    memcpy(reason->text + reason->bytes, words, bytes);
    reason->bytes += bytes;
}

/* std::terminate has caught the exception, so that the C++ library names its type. The name stays
 * mangled here: to demangle it needs memory. */
static void add_exception(struct reason *reason)
{
    const struct type_info *type = aborts.current_exception();
    if (!type)
        return;
    add_to_reason(reason, ABORT_EXCEPTION);
    add_to_reason(reason, type->name + (*type->name == '*')); /* of a type that is local */
}

/* NULL: nothing is to be recorded. */
static struct shim_thread *begin_record(const void *frame)
{
    struct shim_thread *thread = &thread_self;
    if (atomic_load(&shim.state) != SHIM_ACTIVE || thread_is_inside(thread, frame))
        return NULL;
    thread_enter(thread, frame);
    attach_at_end(thread);
    return thread;
}

static void record_abort(const char *assertion, const void *site, const void *frame)
{
    int error = errno;
    struct shim_thread *thread = begin_record(frame);
    if (!thread)
        return;
    struct reason reason = {.bytes = 0};
    struct record record = {.range = {.id = EXCEPTION_ABORT}};
    struct crash_stack stack =
        stacks_take_in_crash(thread, site, frame, (uintptr_t)aborts.current_exception);
    record.stack = stack.id;
    if (assertion) {
        add_to_reason(&reason, "assertion ");
        add_to_reason(&reason, assertion);
    } else if (stack.is_from_library) {
        add_exception(&reason);
    }
    if (reason.bytes)
        record.range.text = emit_said(thread, reason.text, reason.bytes);
    emit_notice(thread, &record, API_notice_exception);
    thread->inside = 0;
    errno = error;
}

uint64_t aborts_exit_stack(int status)
{
    return aborts.exit_stack ? aborts.exit_stack : python_exit_stack(status);
}

/* An interpreter's own call of exit() is no line of the program. */
static void take_exit_stack(const void *site, const void *frame)
{
    int error = errno;
    struct shim_thread *thread = python_memory() ? NULL : begin_record(frame);
    if (!thread)
        return;
    aborts.exit_stack = stacks_take_in_crash(thread, site, frame, 0).id;
    thread->inside = 0;
    errno = error;
}

/* _exit() runs no handler that would record the end. A child of vfork is not this process. */
static void record_exit_at_once(int status, const void *site, const void *frame)
{
    bool is_recorded = atomic_load(&shim.state) == SHIM_ACTIVE && thread_self.attached &&
                       shim.file->process.pid == getpid();
    struct shim_thread *thread = is_recorded ? begin_record(frame) : NULL;
    if (!thread)
        return;
    struct record record = {.end = {.how = END_EXIT, .value = status & 0xff}};
    if (python_memory()) {
        if (python_is_multiprocessing()) { /* it may have caught SystemExit */
            python_exit_record(thread, status);
            record.stack = python_exit_stack(status);
        }
        exceptions_record_handled(thread);
    }
    if (!record.stack)
        record.stack = stacks_take_in_crash(thread, site, frame, 0).id;
    emit_notice(thread, &record, API_notice_exit);
    thread->inside = 0;
}

static _Noreturn void exit_at_once(int status, exit_function *next)
{
    if (next)
        next(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

EXPORT _Noreturn void _exit(int status)
{
    find_at_first();
    record_exit_at_once(status, __builtin_return_address(0), __builtin_frame_address(0));
    exit_at_once(status, aborts.exit_now);
}

EXPORT _Noreturn void _Exit(int status)
{
    find_at_first();
    record_exit_at_once(status, __builtin_return_address(0), __builtin_frame_address(0));
    exit_at_once(status, aborts.exit_at_once);
}

EXPORT _Noreturn void exit(int status)
{
    find_at_first();
    take_exit_stack(__builtin_return_address(0), __builtin_frame_address(0));
    if (aborts.exit)
        aborts.exit(status);
    _Exit(status);
}

EXPORT _Noreturn void abort(void)
{
    find_at_first();
    record_abort(NULL, __builtin_return_address(0), __builtin_frame_address(0));
    if (aborts.abort)
        aborts.abort();
    _Exit(EXIT_FAILURE);
}

EXPORT _Noreturn void __assert_fail(const char *expression, const char *file, unsigned line,
                                    const char *function)
{
    find_at_first();
    record_abort(expression ? expression : "", __builtin_return_address(0),
                 __builtin_frame_address(0));
    if (aborts.assert_fail)
        aborts.assert_fail(expression, file, line, function);
    abort();
}
