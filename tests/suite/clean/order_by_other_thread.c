/* One thread waits for the AllReduce, tells the other through a condition, and that one writes the bucket on its stream.
 * expect: none */
#include "tests/suite/suite.h"

#include <pthread.h>
#include <semaphore.h>

enum { COUNT = 1 << 14 };

static sem_t reduced;
static float *bucket;
static int device;

static void *optimize(void *unused)
{
    cudaStream_t compute;

    (void)unused;
    CUDA(cudaSetDevice(device));
    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    sem_wait(&reduced);
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));
    CUDA(cudaStreamSynchronize(compute));
    return NULL;
}

static void order_by_other_thread(struct rank *me)
{
    pthread_t optimizer;

    device = me->rank;
    bucket = suite_floats(COUNT);
    sem_init(&reduced, 0, 0);
    if (pthread_create(&optimizer, NULL, optimize, NULL))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    sem_post(&reduced);
    pthread_join(optimizer, NULL);
}

SUITE_CASE(.run = order_by_other_thread, .ranks = 2, .layout = PROCESSES);
