/* One thread has all GPUs: in the ring that it groups, GPU 1 sends two halos and GPU 2 receives one.
 * expect: DC203|DC108 certain ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void group_of_all_devices_forgets_one(struct rank *rank, int ranks)
{
    float *out[3], *in[3];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        out[i] = suite_floats(COUNT);
        in[i] = suite_floats(COUNT);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
        NCCL(ncclSend(out[i], COUNT, ncclFloat32, (i + 1) % ranks, rank[i].comm, rank[i].stream));
        NCCL(ncclRecv(in[i], COUNT, ncclFloat32, (i + ranks - 1) % ranks, rank[i].comm, rank[i].stream));
    }
#ifndef TWIN
    NCCL(ncclSend(out[1], COUNT, ncclFloat32, 2, rank[1].comm, rank[1].stream));
#endif
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = group_of_all_devices_forgets_one, .ranks = 3, .layout = ALL);
