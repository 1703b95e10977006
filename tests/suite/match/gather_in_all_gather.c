/* One process drives two GPUs in a group and calls Gather for the one and AllGather for the other.
 * expect: DC101 certain place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 256 };

static void gather_in_all_gather(struct rank *rank, int ranks)
{
    float *own[2], *all[2];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        own[i] = suite_floats(COUNT);
        all[i] = suite_floats((size_t)COUNT * ranks);
    }
    NCCL(ncclGroupStart());
    NCCL(ncclAllGather(own[0], all[0], COUNT, ncclFloat32, rank[0].comm, rank[0].stream));
#ifdef TWIN
    NCCL(ncclAllGather(own[1], all[1], COUNT, ncclFloat32, rank[1].comm, rank[1].stream));
#else
    NCCL(ncclGather(own[1], all[1], COUNT, ncclFloat32, 1, rank[1].comm, rank[1].stream));  /* here */
#endif
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = gather_in_all_gather, .ranks = 2, .layout = ALL);
