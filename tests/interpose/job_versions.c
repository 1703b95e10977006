/* job_versions.c: a program with two CUDA runtimes and two NCCLs, and the libraries for it.
 *
 * LIBRARY_CUDART, LIBRARY_NCCL: a runtime and an NCCL that answer with their number. LIBRARY_USER:
 * a library that is linked with one of each. Else the program, which loads the libraries of its
 * arguments and prints what their calls answered. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#if defined(LIBRARY_CUDART)

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    (void)bytes;
    *pointer = (void *)(uintptr_t)NUMBER;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    (void)device;
    return (cudaError_t)NUMBER;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    (void)graph, (void)flags;
    *exec = (cudaGraphExec_t)(uintptr_t)NUMBER;
    return cudaSuccess;
}

#elif defined(LIBRARY_NCCL)

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    *id = (ncclUniqueId){.internal = {NUMBER}};
    return ncclSuccess;
}

#elif defined(LIBRARY_USER)

void ask_versions(int *versions);

/* Each by a call that the linker bound to what this library is linked with. */
void ask_versions(int *versions)
{
    void *pointer = NULL;
    cudaGraphExec_t exec = NULL;
    ncclUniqueId id = {.internal = {0}};
    cudaMalloc(&pointer, 1);
    cudaGraphInstantiate(&exec, NULL, 0);
    versions[1] = (int)cudaSetDevice(0);
    ncclGetUniqueId(&id);
    versions[0] = (int)(uintptr_t)pointer;
    versions[2] = (int)(uintptr_t)exec;
    versions[3] = id.internal[0];
}

#else

/* What the program itself finds behind the library's handle. */
static int ask_malloc(void *library)
{
    __typeof__(&cudaMalloc) allocate = (__typeof__(&cudaMalloc))dlsym(library, "cudaMalloc");
    void *pointer = NULL;
    if (!allocate || dlerror())
        return -1;
    allocate(&pointer, 1);
    return (int)(uintptr_t)pointer;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        void (*ask)(int *) = library ? (void (*)(int *))dlsym(library, "ask_versions") : NULL;
        int versions[4] = {0};
        if (!ask)
            return fprintf(stderr, "%s\n", dlerror()), 1;
        ask(versions);
        printf("%d %d %d %d %d\n", versions[0], versions[1], versions[2], versions[3],
               ask_malloc(library));
    }
    return 0;
}

#endif
