/* Rank 0 validates and writes checkpoints alone, without collectives; the others wait for it in the next step.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 4096, STEPS = 6 };

static void validate(struct rank *me, float *weights, float *host)
{
    float *scratch = suite_floats(COUNT);

    CUDA(kernels_add(COUNT, weights, scratch, me->stream));
    CUDA(cudaMemcpyAsync(host, scratch, COUNT * sizeof *host, cudaMemcpyDeviceToHost, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaFree(scratch));
    suite_nap_ms(100);
}

static void validation_on_one_rank(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *weights = suite_floats(COUNT), *host;

    CUDA(cudaMallocHost((void **)&host, COUNT * sizeof *host));
    for (int step = 0; step < STEPS; step++) {
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
        CUDA(kernels_add(COUNT, gradients, weights, me->stream));
        if (me->rank == 0 && step % 3 == 2)
            validate(me, weights, host);
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = validation_on_one_rank, .ranks = 4, .layout = PROCESSES);
