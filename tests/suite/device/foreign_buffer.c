/* One process drives all GPUs and gives rank 1 the buffer that lies on GPU 0.
 * expect: DC401 certain ranks=1 place=here
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1024 };

static void foreign_buffer(struct rank *rank, int ranks)
{
    float *bucket[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
#ifdef TWIN
        float *own = bucket[i];
#else
        float *own = bucket[i == 1 ? 0 : i];
#endif
        NCCL(ncclAllReduce(own, own, COUNT, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));   /* here */
    }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = foreign_buffer, .ranks = 2, .layout = ALL);
