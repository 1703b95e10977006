/* The usual single-process job: every step is a group over all devices, and another device comes first each time.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void one_thread_all_devices(struct rank *rank, int ranks)
{
    float *bucket[8];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT);
    }
    for (int step = 0; step < 4; step++) {
        NCCL(ncclGroupStart());
        for (int i = 0; i < ranks; i++) {
            int device = (i + step) % ranks;
            NCCL(ncclAllReduce(bucket[device], bucket[device], COUNT, ncclFloat32, ncclSum, rank[device].comm,
                               rank[device].stream));
        }
        NCCL(ncclGroupEnd());
    }
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = one_thread_all_devices, .ranks = 8, .layout = ALL);
