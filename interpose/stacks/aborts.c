/* aborts.c: records that native code gives up: abort(), a failed assertion, a C++ exception that
 * nobody caught. What follows is the program's own: nothing is changed.
 *
 * libc's own aborts (a damaged heap) do not come through these names, and are seen as signals. */
#undef NDEBUG /* else assert.h does not declare __assert_fail */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/real/resolve.h"
#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"
#include "interpose/stacks/stacks.h"

enum { REASON_BYTES = 256 };

typedef void abort_function(void);
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
