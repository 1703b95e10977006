/* threads.c: threads keep the room that they ask for.
 *
 * With an audit library ld.so reserves thread-local storage for a program's libraries before it
 * knows them (optional_static_tls, which `ddpcheck run` sets for the largest: ThreadSanitizer's),
 * and glibc takes it from the stack of each thread. A stack that is small would be used up, and
 * pthread_create refuses it. So a thread gets as much more. Preloaded; in any process of the job.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* The bytes that GLIBC_TUNABLES makes ld.so reserve, read as ld.so reads them. */
static size_t reserved_bytes(void)
{
    static const char name[] = "glibc.rtld.optional_static_tls=";
    const char *tunables = getenv("GLIBC_TUNABLES");
    const char *found = tunables ? strstr(tunables, name) : NULL;

    return found ? strtoul(found + sizeof(name) - 1, NULL, 0) : 0;
}

/* The attributes, for a stack of glibc's own that has `bytes`. */
static int copy_attributes(pthread_attr_t *copy, const pthread_attr_t *attributes, size_t bytes)
{
    struct sched_param parameters;
    int value;
    size_t guard;

    if (pthread_attr_init(copy))
        return ENOMEM;
    if (!pthread_attr_getdetachstate(attributes, &value))
        pthread_attr_setdetachstate(copy, value);
    if (!pthread_attr_getinheritsched(attributes, &value))
        pthread_attr_setinheritsched(copy, value);
    if (!pthread_attr_getschedpolicy(attributes, &value))
        pthread_attr_setschedpolicy(copy, value);
    if (!pthread_attr_getschedparam(attributes, &parameters))
        pthread_attr_setschedparam(copy, &parameters);
    if (!pthread_attr_getscope(attributes, &value))
        pthread_attr_setscope(copy, value);
    if (!pthread_attr_getguardsize(attributes, &guard))
        pthread_attr_setguardsize(copy, guard);
    return pthread_attr_setstacksize(copy, bytes);
}

/* glibc gives the lower end: 0 - size where the program has set no stack. */
static int has_own_stack(const pthread_attr_t *attributes, size_t *bytes)
{
    void *stack = NULL;

    *bytes = 0;
    return !pthread_attr_getstack(attributes, &stack, bytes) && (uintptr_t)stack + *bytes != 0;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*function)(void *), void *restrict argument)
{
    create_function *real;
    pthread_attr_t copy;
    size_t bytes, more = reserved_bytes();
    int result;

    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (!real)
        return EAGAIN;
    if (!attributes || !more)
        return real(thread, attributes, function, argument);
    if (!has_own_stack(attributes, &bytes)) {
        copy = *attributes; /* with its mask and its processors, which stay the program's */
        if (pthread_attr_getstacksize(attributes, &bytes) ||
            pthread_attr_setstacksize(&copy, bytes + more))
            return real(thread, attributes, function, argument);
        return real(thread, &copy, function, argument);
    }
    if (copy_attributes(&copy, attributes, bytes + more))
        return real(thread, attributes, function, argument);
    result = real(thread, &copy, function, argument);
    pthread_attr_destroy(&copy);
    return result;
}
