/* Mixed precision: the first scaled gradient overflows on one rank, all ranks see that in a reduced flag, skip the step and
 * lower the scale; then all is finite. The replicas stay equal.
 * expect: none
 * options: --hash */
#include "interpose/ddpcheck.h"
#include "tests/suite/suite.h"

enum { COUNT = 128, STEPS = 12, ONE = 0x3c00, INFINITE = 0x7c00 };

static void overflow_skipped_by_all(struct rank *me)
{
    unsigned short gradient[COUNT], *bucket = (unsigned short *)suite_floats(COUNT / 2);
    float overflow, *flag = suite_floats(1), *weights = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
        overflow = step == 0 && me->rank == 1;
        for (int i = 0; i < COUNT; i++)
            gradient[i] = (unsigned short)(ONE + i * me->rank + step);
        if (overflow > 0)
            gradient[5] = INFINITE;
        CUDA(cudaMemcpyAsync(bucket, gradient, sizeof gradient, cudaMemcpyHostToDevice, me->stream));
        CUDA(cudaMemcpyAsync(flag, &overflow, sizeof overflow, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclAllReduce(flag, flag, 1, ncclFloat32, ncclMax, me->comm, me->stream));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat16, ncclAvg, me->comm, me->stream));
        CUDA(cudaMemcpyAsync(&overflow, flag, sizeof overflow, cudaMemcpyDeviceToHost, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        if (overflow == 0)
            CUDA(cudaMemcpyAsync(weights, bucket, COUNT * sizeof *bucket, cudaMemcpyDeviceToDevice, me->stream));
        ddpcheck_hash("weights", weights, COUNT * sizeof *weights, me->comm, me->stream);
    }
}

SUITE_CASE(.run = overflow_skipped_by_all, .ranks = 2, .layout = PROCESSES);
