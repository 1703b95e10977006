/* Four threads with a device each; that of rank 3 sorts its batches on its own device for long, in the phase "shuffle".
 * expect: DC210 certain ranks=3
 * ends: hang
 * hang-after: 1 */
#include "tests/suite/suite.h"

#include <nvtx3/nvToolsExt.h>

enum { COUNT = 1000, NAP_MS = 30 };

static void evaluates_in_phase(struct rank *me)
{
    float *x = suite_floats(COUNT), *y = suite_floats(COUNT);

    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    int batches = 3;
#else
    int batches = me->rank == 3 ? 1000000 : 3;
#endif
    nvtxRangePushA("shuffle");
    for (int i = 0; i < batches; i++) {
        CUDA(cudaMemcpyAsync(y, x, COUNT, cudaMemcpyDeviceToDevice, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        suite_nap_ms(NAP_MS);
    }
    nvtxRangePop();
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = evaluates_in_phase, .ranks = 4, .layout = THREADS);
