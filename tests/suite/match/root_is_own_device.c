/* One thread has all GPUs and gives each call its own device as the root.
 * expect: DC105 certain ranks=0+1+2 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void root_is_own_device(struct rank *rank, int ranks)
{
    float *weights[3];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        weights[i] = suite_floats(COUNT);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
#ifdef TWIN
        int root = 0;
#else
        int root = i;
#endif
        NCCL(ncclBroadcast(weights[i], weights[i], COUNT, ncclFloat32, root, rank[i].comm, rank[i].stream)); /* here */
    }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = root_is_own_device, .ranks = 3, .layout = ALL);
