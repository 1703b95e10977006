/* Two ranks use their communicators in opposite orders. Each rank's watchdog then frees what the operations use on a stream
 * of its own, destroys theirs and ends the process: all of that is what the hang leads to.
 * expect: DC202 certain ranks=0+1 place=reduce
 * ends: error */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/suite/suite.h"

enum { COUNT = 1 << 16, TIMEOUT_MS = 1500, LOOK_MS = 10 };

static atomic_bool is_over;
static float *gradients;
static int device;

static void *watch(void *argument)
{
    struct rank *me = argument;
    cudaStream_t cleanup;

    (void)cudaSetDevice(device);
    for (int waited = 0; waited < TIMEOUT_MS; waited += LOOK_MS) {
        suite_nap_ms(LOOK_MS);
        if (is_over)
            return NULL;
    }
    (void)cudaStreamCreateWithFlags(&cleanup, cudaStreamNonBlocking);
    (void)cudaMemsetAsync(gradients, 0, COUNT, cleanup);
    (void)cudaFreeAsync(gradients, cleanup);
    (void)cudaStreamDestroy(me->stream);
    _exit(1);
}

static void reduce(struct rank *me, ncclComm_t comm)
{
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void watchdog_frees_buffers(struct rank *me)
{
    ncclComm_t other;
    pthread_t watchdog;

    CUDA(cudaGetDevice(&device));
    CUDA(cudaMallocAsync((void **)&gradients, COUNT * sizeof(float), me->stream));
    CUDA(cudaMemsetAsync(gradients, 0, COUNT * sizeof(float), me->stream));
    NCCL(ncclCommSplit(me->comm, 0, me->rank, &other, NULL));
    if (pthread_create(&watchdog, NULL, watch, me))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
#ifndef TWIN
    if (me->rank == 1) {
        reduce(me, other);
        reduce(me, me->comm);
    }
#endif
    reduce(me, me->comm);
    reduce(me, other);
    is_over = true;
    pthread_join(watchdog, NULL);
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = watchdog_frees_buffers, .ranks = 2, .layout = PROCESSES);
