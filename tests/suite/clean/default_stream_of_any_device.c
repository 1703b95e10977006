/* One thread with all GPUs issues on the default stream while device 0 is current: NCCL takes each communicator's device.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void default_stream_of_any_device(struct rank *rank, int ranks)
{
    float *bucket[4];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT);
    }
    CUDA(cudaSetDevice(0));
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAllReduce(bucket[i], bucket[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, 0));
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        CUDA(cudaDeviceSynchronize());
    }
}

SUITE_CASE(.run_all = default_stream_of_any_device, .ranks = 4, .layout = ALL);
