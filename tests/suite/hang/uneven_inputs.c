/* Rank 0's shard has one batch more than the others'; they have left when it reduces the gradients of that batch.
 * expect: DC206 certain ranks=0
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000, BATCHES = 5 };

static void uneven_inputs(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
#ifdef TWIN
    int batches = BATCHES;      /* DistributedSampler's drop_last, or join() */
#else
    int batches = me->rank == 0 ? BATCHES + 1 : BATCHES;
#endif

    for (int batch = 0; batch < batches; batch++) {
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = uneven_inputs, .ranks = 4, .layout = PROCESSES);
