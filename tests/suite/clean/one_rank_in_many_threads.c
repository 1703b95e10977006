/* A rank issues from two threads, each with a communicator of its own and with the host's join between them.
 * expect: none */
#include "tests/suite/suite.h"

#include <pthread.h>

enum { COUNT = 1000 };

static void *reduce(void *argument)
{
    struct rank *me = argument;
    float *bucket;

    CUDA(cudaSetDevice(me->rank));
    bucket = suite_floats(COUNT);
    for (int step = 0; step < 3; step++)
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    return NULL;
}

static void one_rank_in_many_threads(struct rank *me)
{
    struct rank other = *me;
    pthread_t thread;

    CUDA(cudaStreamCreateWithFlags(&other.stream, cudaStreamNonBlocking));
    NCCL(ncclCommInitRank(&other.comm, me->ranks, suite_id(me, 1), me->rank));
    reduce(me);
    if (pthread_create(&thread, NULL, reduce, &other))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    pthread_join(thread, NULL);
    NCCL(ncclCommDestroy(other.comm));
}

SUITE_CASE(.run = one_rank_in_many_threads, .ranks = 2, .layout = PROCESSES);
