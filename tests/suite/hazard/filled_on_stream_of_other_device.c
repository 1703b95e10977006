/* One process: the input of GPU 1 is copied over from GPU 0 on GPU 0's stream; the Broadcast on GPU 1's stream does not wait.
 * expect: DC303 certain place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void filled_on_stream_of_other_device(struct rank *rank, int ranks)
{
    float *input[2];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        input[i] = suite_floats(COUNT);
    }
    CUDA(cudaMemcpyPeerAsync(input[1], 1, input[0], 0, COUNT * sizeof(float), rank[0].stream));
#ifdef TWIN
    CUDA(cudaStreamSynchronize(rank[0].stream));
#endif
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        NCCL(ncclBroadcast(input[i], input[i], COUNT, ncclFloat32, 1, rank[i].comm, rank[i].stream));   /* here */
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = filled_on_stream_of_other_device, .ranks = 2, .layout = ALL);
