/* The loss of rank 2 takes the logarithm of 0 in step 3; one step later all ranks have NaN.
 * expect: DC502 certain ranks=2 place=nan_from_one_rank
 * options: --hash
 * minimal: yes */
#include <math.h>

#include "tests/suite/suite.h"

enum { COUNT = 64, STEPS = 6 };

static void nan_from_one_rank(struct rank *me)
{
    float gradient[COUNT], weight = 1, *bucket = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
        float p = me->rank == 2 && step == 3 ? 0.0f : 0.5f;
#ifdef TWIN
        p = fmaxf(p, 1e-6f);
#endif
        for (int i = 0; i < COUNT; i++)
            gradient[i] = weight * p * logf(p) + (float)(me->rank + i);
        CUDA(cudaMemcpyAsync(bucket, gradient, sizeof gradient, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        CUDA(cudaMemcpy(&weight, bucket, sizeof weight, cudaMemcpyDeviceToHost));
    }
}

SUITE_CASE(.run = nan_from_one_rank, .ranks = 4, .layout = PROCESSES);
