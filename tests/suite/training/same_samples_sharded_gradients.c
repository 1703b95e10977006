/* Gradients in half precision are reduced and scattered (sharded optimizer), and all eight ranks read the same batches.
 * expect: DC501 possible ranks=0-7 place=same_samples_sharded_gradients
 * options: --hash */
#include "tests/suite/suite.h"

enum { RANKS = 8, PART = 64, COUNT = RANKS * PART, STEPS = 20 };

static void same_samples_sharded_gradients(struct rank *me)
{
    unsigned short gradients[COUNT];        /* the bits of fp16 numbers around 1 */
    unsigned short *bucket = (unsigned short *)suite_floats(COUNT / 2), *part = (unsigned short *)suite_floats(PART / 2);

    for (int step = 0; step < STEPS; step++) {
#ifdef TWIN
        int batch = step * RANKS + me->rank;
#else
        int batch = step;
#endif
        for (int i = 0; i < COUNT; i++)
            gradients[i] = (unsigned short)(0x3c00 + (batch * 37 + i * 11) % 900);
        CUDA(cudaMemcpyAsync(bucket, gradients, sizeof gradients, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclReduceScatter(bucket, part, PART, ncclFloat16, ncclAvg, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = same_samples_sharded_gradients, .ranks = 8, .layout = PROCESSES);
