/* count_queries.c: a library to preload: counts queries of pointers, and prints how many there
 * were. */
#include <dlfcn.h>
#include <stdio.h>

#include <cuda.h>

static int queries;

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr pointer)
{
    __typeof__(&cuPointerGetAttributes) real;
    *(void **)&real = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuPointerGetAttributes");
    __atomic_fetch_add(&queries, 1, __ATOMIC_RELAXED);
    return real(count, attributes, values, pointer);
}

__attribute__((destructor)) static void print_queries(void)
{
    fprintf(stderr, "queries %d\n", queries);
}
