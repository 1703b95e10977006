/* job_next.c: dlsym(RTLD_NEXT) means what comes after the library that asks, also when dlsym is the
 * shim's. Compiled three times: the program, and two libraries (LIBRARY 1 and 2) that both have
 * probe(). */
#include <dlfcn.h>
#include <stdio.h>

int probe(void);
int probe_after_first(void);

#ifdef LIBRARY
int probe(void)
{
    return LIBRARY;
}

#if LIBRARY == 1
int probe_after_first(void)
{
    int (*after)(void) = (int (*)(void))dlsym(RTLD_NEXT, "probe");
    return after ? after() : 0;
}
#endif
#else
int main(void)
{
    if (probe() != 1 || probe_after_first() != 2) {
        fprintf(stderr, "probe of library %d, after the first: %d\n", probe(), probe_after_first());
        return 9;
    }
    puts("ok");
    return 0;
}
#endif
