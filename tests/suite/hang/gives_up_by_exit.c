/* Rank 1 waits for a file that nobody writes. The watchdog of rank 0 frees the gradients on a stream of its own and leaves by
 * exit(), long before --hang-after has passed, without an abort of the communicator.
 * expect: DC201 possible ranks=1
 * ends: error
 * hang-after: 10 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/suite/suite.h"

enum { COUNT = 1000, TIMEOUT_MS = 1500, LOOK_MS = 10 };

static atomic_bool is_over;
static float *gradients;
static int device;

static void *watch(void *argument)
{
    cudaStream_t cleanup;

    (void)argument;
    (void)cudaSetDevice(device);
    for (int waited = 0; waited < TIMEOUT_MS; waited += LOOK_MS) {
        suite_nap_ms(LOOK_MS);
        if (is_over)
            return NULL;
    }
    (void)cudaStreamCreateWithFlags(&cleanup, cudaStreamNonBlocking);
    (void)cudaFreeAsync(gradients, cleanup);
    _exit(3);
}

static void load_data(struct rank *me)
{
#ifndef TWIN
    for (int waited = 0; waited < 2 * TIMEOUT_MS; waited += LOOK_MS)
        suite_nap_ms(LOOK_MS);
    CUDA(cudaStreamQuery(me->stream));
    _exit(1);
#endif
    CUDA(cudaStreamQuery(me->stream));
}

static void gives_up_by_exit(struct rank *me)
{
    pthread_t watchdog;

    CUDA(cudaGetDevice(&device));
    CUDA(cudaMallocAsync((void **)&gradients, COUNT * sizeof(float), me->stream));
    CUDA(cudaMemsetAsync(gradients, 0, COUNT * sizeof(float), me->stream));
    if (me->rank == 0 && pthread_create(&watchdog, NULL, watch, me))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 1)
        load_data(me);
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    is_over = true;
    if (me->rank == 0)
        pthread_join(watchdog, NULL);
}

SUITE_CASE(.run = gives_up_by_exit, .ranks = 2, .layout = PROCESSES);
