/* One process drives four devices and shifts a tensor around them, one device after the other, without a group: each
 * device's send waits for a receive that stands behind the neighbour's own send.
 * expect: DC203 certain ranks=0+1+2+3 place=devices_in_turn
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 512 };

static void devices_in_turn(struct rank *rank, int ranks)
{
    float *out[SUITE_RANKS_MAX], *in[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        out[i] = suite_floats(COUNT);
        in[i] = suite_floats(COUNT);
    }
#ifdef TWIN
    NCCL(ncclGroupStart());
#endif
    for (int i = 0; i < ranks; i++) {
        NCCL(ncclSend(out[i], COUNT, ncclFloat32, (i + 1) % ranks, rank[i].comm, rank[i].stream));
        NCCL(ncclRecv(in[i], COUNT, ncclFloat32, (i + ranks - 1) % ranks, rank[i].comm, rank[i].stream));
    }
#ifdef TWIN
    NCCL(ncclGroupEnd());
#endif
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = devices_in_turn, .ranks = 4, .layout = ALL);
