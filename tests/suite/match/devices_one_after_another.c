/* One thread drives all devices and calls the AllReduce for one after the other, without a group. NCCL forbids it: the first
 * call may wait for the others before it returns.
 * expect: DC111 certain place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void devices_one_after_another(struct rank *rank, int ranks)
{
    float *bucket[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT);
    }
#ifdef TWIN
    NCCL(ncclGroupStart());
#endif
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAllReduce(bucket[i], bucket[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, /* here */
                           rank[i].stream));
#ifdef TWIN
    NCCL(ncclGroupEnd());
#endif
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = devices_one_after_another, .ranks = 3, .layout = ALL);
