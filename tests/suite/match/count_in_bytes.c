/* One process drives all GPUs; for the last it passes a size in bytes where NCCL wants elements.
 * expect: DC102 certain ranks=3 place=here
 * cause: A count in bytes on one rank
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 256 };

static void count_in_bytes(struct rank *rank, int ranks)
{
    float *bucket[4];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT * sizeof(float));
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
#ifdef TWIN
        size_t count = COUNT;
#else
        size_t count = i == 3 ? COUNT * sizeof(float) : COUNT;
#endif
        NCCL(ncclAllReduce(bucket[i], bucket[i], count, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));   /* here */
    }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = count_in_bytes, .ranks = 4, .layout = ALL);
