/* One process drives two GPUs and reduces the one's loss scale with max, the other's with min.
 * expect: DC104 certain place=here
 * ends: any */
#include "tests/suite/suite.h"

static void minimum_and_maximum(struct rank *rank, int ranks)
{
    float *scale[2];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        scale[i] = suite_floats(1);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
#ifdef TWIN
        ncclRedOp_t operator = ncclMin;
#else
        ncclRedOp_t operator = i == 0 ? ncclMin : ncclMax;
#endif
        NCCL(ncclAllReduce(scale[i], scale[i], 1, ncclFloat32, operator, rank[i].comm, rank[i].stream));    /* here */
    }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = minimum_and_maximum, .ranks = 2, .layout = ALL);
