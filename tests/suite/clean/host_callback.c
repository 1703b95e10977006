/* A host function behind the AllReduce tells another thread that the bucket is free; it calls neither CUDA nor NCCL.
 * expect: none */
#include "tests/suite/suite.h"

#include <semaphore.h>

enum { COUNT = 1 << 14 };

static void tell(void *semaphore)
{
    sem_post(semaphore);
}

static void host_callback(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t compute;
    sem_t free_again;

    sem_init(&free_again, 0, 0);
    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    for (int step = 0; step < 3; step++) {
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaLaunchHostFunc(me->stream, tell, &free_again));
        sem_wait(&free_again);
        CUDA(cudaStreamSynchronize(me->stream));
        CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));
        CUDA(cudaStreamSynchronize(compute));
    }
}

SUITE_CASE(.run = host_callback, .ranks = 2, .layout = PROCESSES);
