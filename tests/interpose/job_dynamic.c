/* job_dynamic.c: NCCL and CUDA as a Python extension loads them, by dlopen and privately. Links
 * neither. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(9);                                                                \
        }                                                                           \
    } while (0)

static void *find(void *handle, const char *name)
{
    void *address = dlsym(handle, name);
    EXPECT(address);
    return address;
}

int main(void)
{
    EXPECT(!dlsym(RTLD_DEFAULT, "ncclAllReduce")); /* nothing that has it is loaded yet */
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL),
         *cuda = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    EXPECT(nccl && cuda);
    EXPECT(!dlsym(nccl, "ncclNoSuchFunction") && dlerror());
    EXPECT(dlsym(nccl, "strlen"));
    __typeof__(&ncclCommInitRank) init = (__typeof__(init))find(nccl, "ncclCommInitRank");
    __typeof__(&ncclAllReduce) all_reduce = (__typeof__(all_reduce))find(nccl, "ncclAllReduce");
    __typeof__(&cudaMalloc) allocate = (__typeof__(allocate))find(cuda, "cudaMalloc");
    ncclUniqueId id;
    ncclComm_t comm;
    float *memory;
    memset(&id, 7, sizeof id);
    EXPECT(!init(&comm, 2, id, 0));
    EXPECT(!allocate((void **)&memory, 64));
    EXPECT(!all_reduce(memory, memory, 5, ncclFloat32, ncclSum, comm, NULL));
    puts("ok");
    return 0;
}
