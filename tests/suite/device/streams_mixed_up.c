/* One thread drives three GPUs and gives each communicator the next one's stream.
 * expect: DC402 certain ranks=0-2 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void streams_mixed_up(struct rank *rank, int ranks)
{
    float *bucket[3];
#ifdef TWIN
    int shift = 0;
#else
    int shift = 1;
#endif

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        bucket[i] = suite_floats(COUNT);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAllReduce(bucket[i], bucket[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, /* here */
                           rank[(i + shift) % ranks].stream));
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = streams_mixed_up, .ranks = 3, .layout = ALL);
