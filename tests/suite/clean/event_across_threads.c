/* One thread issues the AllReduce and records an event, another makes its stream wait for it and writes the bucket.
 * expect: none */
#include "tests/suite/suite.h"

#include <pthread.h>
#include <semaphore.h>

enum { COUNT = 1 << 12 };

struct work {
    int device;
    float *bucket;
    cudaEvent_t reduced;
    sem_t recorded;
};

static void *optimize(void *argument)
{
    struct work *work = argument;
    cudaStream_t compute;

    CUDA(cudaSetDevice(work->device));
    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    sem_wait(&work->recorded);
    CUDA(cudaStreamWaitEvent(compute, work->reduced, 0));
    CUDA(cudaMemsetAsync(work->bucket, 0, COUNT * sizeof(float), compute));
    CUDA(cudaStreamSynchronize(compute));
    return NULL;
}

static void event_across_threads(struct rank *me)
{
    struct work work = { .device = me->rank, .bucket = suite_floats(COUNT) };
    pthread_t optimizer;

    CUDA(cudaEventCreateWithFlags(&work.reduced, cudaEventDisableTiming));
    sem_init(&work.recorded, 0, 0);
    if (pthread_create(&optimizer, NULL, optimize, &work))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    NCCL(ncclAllReduce(work.bucket, work.bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(work.reduced, me->stream));
    sem_post(&work.recorded);
    pthread_join(optimizer, NULL);
}

SUITE_CASE(.run = event_across_threads, .ranks = 2, .layout = THREADS);
