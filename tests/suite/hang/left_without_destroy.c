/* A worker returns from main with status 0 after its last batch, without destroying anything; the other has a batch left.
 * expect: DC206 certain ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static void left_without_destroy(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
#ifdef TWIN
    int batches = 4;
#else
    int batches = 4 + me->rank;
#endif

    for (int batch = 0; batch < batches; batch++) {
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
    exit(0);
}

SUITE_CASE(.run = left_without_destroy, .ranks = 2, .layout = PROCESSES);
