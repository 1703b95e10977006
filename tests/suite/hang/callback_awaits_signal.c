/* A callback on the side stream waits for a flag that the main thread sets after it has waited for the main stream, which
 * an event makes wait for the side stream. Rank 2 alone.
 * expect: DC208 possible ranks=2 place=callback_awaits_signal
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdatomic.h>

enum { COUNT = 1000 };

static atomic_bool ready;

static void CUDART_CB await_ready(cudaStream_t stream, cudaError_t status, void *unused)
{
    (void)stream, (void)status, (void)unused;
    while (!atomic_load(&ready))
        suite_nap_ms(2);
}

static void callback_awaits_signal(struct rank *me)
{
    float *x = suite_floats(COUNT);
    cudaStream_t side;
    cudaEvent_t ordered;

    CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&ordered));
#ifdef TWIN
    atomic_store(&ready, true);
#endif
    if (me->rank == 2)
        CUDA(cudaStreamAddCallback(side, await_ready, NULL, 0));
    CUDA(cudaEventRecord(ordered, side));
    CUDA(cudaStreamWaitEvent(me->stream, ordered, 0));
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    atomic_store(&ready, true);
}

SUITE_CASE(.run = callback_awaits_signal, .ranks = 3, .layout = PROCESSES);
