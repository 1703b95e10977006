/* One process: a kernel on GPU 1 reads what lies on GPU 0, with peer access enabled and after the stream that wrote it.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void peer_access(struct rank *rank, int ranks)
{
    float *weights[2];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        CUDA(cudaDeviceEnablePeerAccess(1 - i, 0));
        weights[i] = suite_floats(COUNT);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAllReduce(weights[i], weights[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
    CUDA(cudaSetDevice(1));
    CUDA(kernels_add(COUNT, weights[0], weights[1], rank[1].stream));
    CUDA(cudaStreamSynchronize(rank[1].stream));
}

SUITE_CASE(.run_all = peer_access, .ranks = 2, .layout = ALL);
