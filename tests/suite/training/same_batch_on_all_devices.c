/* One process drives all devices and gives each the same batch instead of a part of it.
 * expect: DC501 possible ranks=0-2 place=same_batch_on_all_devices
 * options: --hash */
#include <math.h>

#include "tests/suite/suite.h"

enum { COUNT = 300, STEPS = 18 };

static void same_batch_on_all_devices(struct rank *rank, int ranks)
{
    float gradients[COUNT], *bucket[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT);
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ranks; i++) {
#ifdef TWIN
            int part = i;
#else
            int part = 0;
#endif
            for (int k = 0; k < COUNT; k++)
                gradients[k] = sinf((float)(step * ranks + part) + (float)k);
            CUDA(cudaMemcpyAsync(bucket[i], gradients, sizeof gradients, cudaMemcpyHostToDevice, rank[i].stream));
        }
        NCCL(ncclGroupStart());
        for (int i = 0; i < ranks; i++)
            NCCL(ncclAllReduce(bucket[i], bucket[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
        NCCL(ncclGroupEnd());
        for (int i = 0; i < ranks; i++)
            CUDA(cudaStreamSynchronize(rank[i].stream));
    }
}

SUITE_CASE(.run_all = same_batch_on_all_devices, .ranks = 3, .layout = ALL);
