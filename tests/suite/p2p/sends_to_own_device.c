/* One thread drives both devices: it sends on one and waits, before it receives on the other.
 * expect: DC203 certain ranks=0 place=sends_to_own_device
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void sends_to_own_device(struct rank *rank, int ranks)
{
    (void)ranks;
    CUDA(cudaSetDevice(rank[0].rank));
    float *x = suite_floats(COUNT);
    CUDA(cudaSetDevice(rank[1].rank));
    float *y = suite_floats(COUNT);
#ifdef TWIN
    NCCL(ncclGroupStart());
#endif
    NCCL(ncclSend(x, COUNT, ncclFloat32, 1, rank[0].comm, rank[0].stream));
#ifndef TWIN
    CUDA(cudaStreamSynchronize(rank[0].stream));
#endif
    NCCL(ncclRecv(y, COUNT, ncclFloat32, 0, rank[1].comm, rank[1].stream));
#ifdef TWIN
    NCCL(ncclGroupEnd());
#endif
    for (int i = 0; i < 2; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = sends_to_own_device, .ranks = 2, .layout = ALL);
