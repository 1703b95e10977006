/* One thread drives two GPUs and waits for the first one's AllReduce before it issues the second one's.
 * expect: DC201 certain ranks=1 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void device_waited_for_too_soon(struct rank *rank, int ranks)
{
    float *bucket[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT);
    }
#ifdef TWIN
    NCCL(ncclGroupStart());
#endif
    for (int i = 0; i < ranks; i++) {
        NCCL(ncclAllReduce(bucket[i], bucket[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
#ifndef TWIN
        CUDA(cudaStreamSynchronize(rank[i].stream));    /* here */
#endif
    }
#ifdef TWIN
    NCCL(ncclGroupEnd());
#endif
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = device_waited_for_too_soon, .ranks = 2, .layout = ALL);
