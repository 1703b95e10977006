/* One thread, two GPUs: the optimizer's kernel for the weights of GPU 1 is launched on the stream of GPU 0.
 * expect: DC403 certain place=here
 * ends: any */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void kernel_on_wrong_device(struct rank *rank, int ranks)
{
    float *gradients[2], *weights[2];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        gradients[i] = suite_floats(COUNT);
        weights[i] = suite_floats(COUNT);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAllReduce(gradients[i], gradients[i], COUNT, ncclFloat32, ncclAvg, rank[i].comm, rank[i].stream));
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
    for (int i = 0; i < ranks; i++) {
#ifdef TWIN
        CUDA(cudaSetDevice(i));
        CUDA(kernels_add(COUNT, gradients[i], weights[i], rank[i].stream));
#else
        CUDA(cudaSetDevice(0));
        CUDA(kernels_add(COUNT, gradients[i], weights[i], rank[0].stream));     /* here */
#endif
    }
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = kernel_on_wrong_device, .ranks = 2, .layout = ALL);
