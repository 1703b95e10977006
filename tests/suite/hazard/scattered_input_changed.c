/* Ranks 1 and 3 write their next gradients to a buffer that a ReduceScatter, in a group, still has to read.
 * expect: DC309 certain ranks=1,3 place=scattered_input_changed
 * options: --hash */
#include "tests/suite/suite.h"

enum { RANKS = 4, PART = 1000, COUNT = RANKS * PART };

static void scattered_input_changed(struct rank *me)
{
    double *gradients, *part = (double *)suite_floats(2 * PART), *loss = (double *)suite_floats(2);

    CUDA(cudaMallocManaged((void **)&gradients, COUNT * sizeof *gradients, cudaMemAttachGlobal));
    CUDA(cudaMemset(gradients, 0, COUNT * sizeof *gradients));
    CUDA(cudaDeviceSynchronize());
    if (me->rank == 0)
        for (int i = 1; i < RANKS; i++)
            suite_await(me, i);
    NCCL(ncclGroupStart());
    NCCL(ncclReduceScatter(gradients, part, PART, ncclFloat64, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(loss, loss, 1, ncclFloat64, ncclSum, me->comm, me->stream));
    NCCL(ncclGroupEnd());
#ifdef TWIN
    suite_tell(me, me->rank);
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    if (me->rank % 2) {
        suite_nap_ms(500);
        gradients[me->rank * PART] = 0.5;
    }
    suite_tell(me, me->rank);
}

SUITE_CASE(.run = scattered_input_changed, .ranks = 4, .layout = PROCESSES);
