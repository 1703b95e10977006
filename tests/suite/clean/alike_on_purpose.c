/* All ranks send the same, and should: tokens, counters, short vectors, a constant that is reduced again and again,
 * maxima, integers. None are gradients.
 * expect: none
 * options: --hash */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1024, STEPS = 20, SHORT = 100 };

static void alike_on_purpose(struct rank *me)
{
    float values[COUNT], *token = suite_floats(COUNT), *statistics = suite_floats(SHORT), *table = suite_floats(COUNT);
    float *sum = suite_floats(COUNT);

    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i * 0.25f;
    CUDA(cudaMemcpyAsync(table, values, sizeof values, cudaMemcpyHostToDevice, me->stream));
    for (int step = 0; step < STEPS; step++) {
        CUDA(kernels_fill(COUNT, (float)(step + 1), token, me->stream));
        NCCL(ncclAllReduce(token, token, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));       /* a barrier */
        values[0] = (float)step;
        CUDA(cudaMemcpyAsync(statistics, values, SHORT * sizeof *values, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclAllReduce(statistics, statistics, SHORT, ncclFloat32, ncclAvg, me->comm, me->stream));
        NCCL(ncclAllReduce(table, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclAllReduce(sum, sum, COUNT, ncclFloat32, ncclMax, me->comm, me->stream));
        NCCL(ncclAllReduce(sum, sum, COUNT, ncclInt32, ncclMin, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = alike_on_purpose, .ranks = 3, .layout = PROCESSES);
