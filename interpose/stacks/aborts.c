/* aborts.c: records that native code gives up: abort(), a failed assertion, a C++ exception that
 * nobody caught; and where it calls exit(). What follows is the program's own: nothing is changed.
 *
 * libc's own aborts (a damaged heap) do not come through these names, and are seen as signals. */
#undef NDEBUG /* else assert.h does not declare __assert_fail */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
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

enum { REASON_BYTES = 256 };

typedef void abort_function(void);
typedef void exit_function(int status);
typedef void assert_function(const char *expression, const char *file, unsigned line,
                             const char *function);

static void *find_next(const char *name)
{
    resolve_dlsym_function *find = resolve_dlsym();
    return find ? find(RTLD_NEXT, name) : NULL;
}

/* std::terminate has caught the exception, so that the C++ library names its type. */
static void name_exception(char *reason)
{
    struct type_info {
        const void *table;
        const char *name;
    };
    resolve_dlsym_function *find = resolve_dlsym();
    struct type_info *(*current)(void) = NULL;
    char *(*demangle)(const char *name, char *buffer, size_t *bytes, int *status) = NULL;
    if (find) {
        *(void **)&current = find(RTLD_DEFAULT, "__cxa_current_exception_type");
        *(void **)&demangle = find(RTLD_DEFAULT, "__cxa_demangle");
    }
    const struct type_info *type = current ? current() : NULL;
    if (!type)
        return;
    const char *name = type->name + (*type->name == '*'); /* of a type that is local */
    char *words = demangle ? demangle(name, NULL, NULL, NULL) : NULL;
    snprintf(reason, REASON_BYTES, "uncaught C++ exception %s", words ? words : name);
    free(words);
}

static void record_abort(const char *reason, const void *site, const void *frame)
{
    struct shim_thread *thread = &thread_self;
    if (atomic_load(&shim.state) != SHIM_ACTIVE || thread->inside)
        return;
    thread->inside = 1;
    int error = errno;
    if (thread->attached || attach_thread(thread)) {
        char cause[REASON_BYTES] = "";
        struct record record = {.range = {.id = EXCEPTION_ABORT}};
        if (reason)
            snprintf(cause, sizeof cause, "%s", reason);
        else
            name_exception(cause);
        if (*cause)
            record.range.text = emit_string(thread, cause, strlen(cause));
        record.stack = stacks_take(thread, site, frame, STACK_WHOLE);
        emit_notice(thread, &record, API_notice_exception);
    }
    errno = error;
    thread->inside = 0;
}

static struct {
    uint64_t exit_stack;
    exit_function *next[2]; /* _exit and _Exit that come after us: libc's, or another library's */
} aborts;

uint64_t aborts_exit_stack(int status)
{
    return aborts.exit_stack ? aborts.exit_stack : python_exit_stack(status);
}

/* An interpreter's own call of exit() is no line of the program. */
static void take_exit_stack(const void *site, const void *frame)
{
    struct shim_thread *thread = &thread_self;
    if (atomic_load(&shim.state) != SHIM_ACTIVE || thread->inside || python_memory())
        return;
    thread->inside = 1;
    int error = errno;
    if (thread->attached || attach_thread(thread))
        aborts.exit_stack = stacks_take(thread, site, frame, STACK_WHOLE);
    errno = error;
    thread->inside = 0;
}

/* _exit() runs no handler that would record the end. It may be called in a signal handler, so no
 * lock is taken (before glibc 2.35 the unwinder takes one) but in Python, which defers its
 * handlers; and in a child of vfork, which is not this process. */
static void record_exit_at_once(int status, const void *site, const void *frame)
{
    struct shim_thread *thread = &thread_self;
    if (atomic_load(&shim.state) != SHIM_ACTIVE || thread->inside || !thread->attached ||
        shim.file->process.pid != getpid())
        return;
    thread->inside = 1;
    uint64_t address[STACK_FRAMES];
    struct record record = {.end = {.how = END_EXIT, .value = status & 0xff}};
    if (python_memory()) {
        if (python_is_multiprocessing()) { /* it may have caught SystemExit */
            python_exit_record(thread, status);
            record.stack = python_exit_stack(status);
        }
        exceptions_record_handled(thread);
        if (!record.stack)
            record.stack = stacks_take(thread, site, frame, STACK_WHOLE);
    } else {
        uint32_t count = stacks_walk((uintptr_t)site, address, STACK_FRAMES);
        record.stack = count ? stacks_emit_addresses(thread, address, count) : 0;
    }
    emit_notice(thread, &record, API_notice_exit);
    thread->inside = 0;
}

bool aborts_start(void)
{
    *(void **)&aborts.next[0] = find_next("_exit");
    *(void **)&aborts.next[1] = find_next("_Exit");
    return true;
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
    record_exit_at_once(status, __builtin_return_address(0), __builtin_frame_address(0));
    exit_at_once(status, aborts.next[0]);
}

EXPORT _Noreturn void _Exit(int status)
{
    record_exit_at_once(status, __builtin_return_address(0), __builtin_frame_address(0));
    exit_at_once(status, aborts.next[1]);
}

EXPORT _Noreturn void exit(int status)
{
    take_exit_stack(__builtin_return_address(0), __builtin_frame_address(0));
    exit_function *real;
    *(void **)&real = find_next("exit");
    if (real)
        real(status);
    _Exit(status);
}

EXPORT _Noreturn void abort(void)
{
    record_abort(NULL, __builtin_return_address(0), __builtin_frame_address(0));
    abort_function *real;
    *(void **)&real = find_next("abort");
    if (real)
        real();
    _Exit(EXIT_FAILURE);
}

EXPORT _Noreturn void __assert_fail(const char *expression, const char *file, unsigned line,
                                    const char *function)
{
    char reason[REASON_BYTES];
    snprintf(reason, sizeof reason, "assertion %s", expression ? expression : "");
    record_abort(reason, __builtin_return_address(0), __builtin_frame_address(0));
    assert_function *real;
    *(void **)&real = find_next("__assert_fail");
    if (real)
        real(expression, file, line, function);
    abort();
}
