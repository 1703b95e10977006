/* PyTorch's watchdog sees that the AllReduce is done; the main thread clears the bucket without having waited, in time by
 * chance. Handed over with the next NCCL call, as PyTorch does, what the watchdog saw counts.
 * expect: DC301 certain ranks=0-1 place=watchdog_saw_it_done */
#include "tests/suite/suite.h"

#include <pthread.h>
#include <time.h>

enum { COUNT = 1 << 14 };

static void *watch(void *reduced)
{
    pthread_setname_np(pthread_self(), "pt_nccl_watchdg");
    while (cudaEventQuery(reduced) == cudaErrorNotReady)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return NULL;
}

static cudaEvent_t reduce_watched(struct rank *me, float *bucket)
{
    cudaEvent_t reduced;
    pthread_t watchdog;

    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(reduced, me->stream));
    if (pthread_create(&watchdog, NULL, watch, reduced))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    pthread_join(watchdog, NULL);
    return reduced;
}

static void watchdog_saw_it_done(struct rank *me)
{
    float *let_go = suite_floats(COUNT), *other = suite_floats(COUNT), *bucket = suite_floats(COUNT);
    cudaEvent_t reduced;
    cudaStream_t compute;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    reduce_watched(me, let_go);
    NCCL(ncclAllReduce(other, other, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaMemsetAsync(let_go, 0, COUNT * sizeof *let_go, compute));

    reduced = reduce_watched(me, bucket);
#ifdef TWIN
    CUDA(cudaEventQuery(reduced));
#else
    (void)reduced;
#endif
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));
    CUDA(cudaDeviceSynchronize());
}

SUITE_CASE(.run = watchdog_saw_it_done, .ranks = 2, .layout = PROCESSES);
