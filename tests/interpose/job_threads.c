/* job_threads.c: two ranks as threads of one process, which create their communicators at the same
 * time and then reduce once. Built with SLOW_REGISTER it is a library to preload instead, whose
 * cuMemHostRegister takes long, and at its second call longer than at its first. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#ifdef SLOW_REGISTER

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    static int calls;
    __typeof__(&cuMemHostRegister_v2) real;
    *(void **)&real = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuMemHostRegister_v2");
    usleep(__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) ? 900000 : 200000);
    return real(pointer, bytes, flags);
}

#else

enum { RANKS = 2, COUNT = 256 };

static ncclUniqueId id;

static void check(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %d\n", what, error);
    exit(9);
}

static void *run_rank(void *argument)
{
    int rank = *(int *)argument;
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
    check(cudaSetDevice(rank), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaMalloc((void **)&buffer, COUNT * sizeof *buffer), "cudaMalloc");
    check(cudaMemset(buffer, 0, COUNT * sizeof *buffer), "cudaMemset");
    check(ncclCommInitRank(&comm, RANKS, id, rank), "ncclCommInitRank");
    check(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, comm, stream), "AllReduce");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check(ncclCommDestroy(comm), "ncclCommDestroy");
    return NULL;
}

int main(void)
{
    pthread_t thread[RANKS];
    int rank[RANKS] = {0, 1};
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    for (int i = 0; i < RANKS; i++)
        check(pthread_create(&thread[i], NULL, run_rank, &rank[i]), "pthread_create");
    for (int i = 0; i < RANKS; i++)
        pthread_join(thread[i], NULL);
    puts("ok");
    return 0;
}

#endif
