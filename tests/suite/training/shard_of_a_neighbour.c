/* Rank 3 takes the shard of rank 2: its sampler was made with the wrong rank. The others have their own.
 * expect: DC501 possible ranks=2-3 place=shard_of_a_neighbour
 * options: --hash */
#include <math.h>

#include "tests/suite/suite.h"

enum { COUNT = 512, STEPS = 24 };

static void shard_of_a_neighbour(struct rank *me)
{
    float gradients[COUNT], *bucket = suite_floats(COUNT), *sum = suite_floats(COUNT);
#ifdef TWIN
    int shard = me->rank;
#else
    int shard = me->rank == 3 ? 2 : me->rank;
#endif

    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            gradients[i] = cosf((float)(shard * 1000 + step * COUNT + i));
        CUDA(cudaMemcpyAsync(bucket, gradients, sizeof gradients, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclAllReduce(bucket, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = shard_of_a_neighbour, .ranks = 4, .layout = THREADS);
