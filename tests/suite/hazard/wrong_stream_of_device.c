/* One process, all devices: the buckets are cleared on the streams of the operations, except that of device 1, which is
 * cleared on a stream made for it a moment ago.
 * expect: DC301 certain ranks=1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void wrong_stream_of_device(struct rank *rank, int ranks)
{
    float *bucket[4];
    cudaStream_t stream[4];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT);
        stream[i] = rank[i].stream;
#ifndef TWIN
        if (i == 1)
            CUDA(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
#endif
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAllReduce(bucket[i], bucket[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        CUDA(cudaMemsetAsync(bucket[i], 0, COUNT * sizeof(float), stream[i]));      /* here */
    }
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(stream[i]));
}

SUITE_CASE(.run_all = wrong_stream_of_device, .ranks = 4, .layout = ALL);
