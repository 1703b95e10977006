/* Buffers at odd addresses and of odd lengths, operations on several streams and in one group, in place and not, and a
 * group in which one operation fills what another sent.
 * expect: none
 * options: --hash */
#include "tests/suite/suite.h"

enum { BYTES = 40000, STREAMS = 3 };

static void any_bytes_hashed(struct rank *rank, int ranks)
{
    char *from[SUITE_RANKS_MAX], *to[SUITE_RANKS_MAX];
    int last = ranks - 1;

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        from[i] = (char *)suite_floats(BYTES);
        to[i] = (char *)suite_floats(BYTES);
    }
    for (int shift = 1; shift < 9; shift++) {
        NCCL(ncclGroupStart());
        for (int i = 0; i < ranks; i++) {
            NCCL(ncclAllReduce(from[i] + shift, to[i] + 3 * shift, BYTES - shift, ncclUint8, ncclSum, rank[i].comm, rank[i].stream));
            NCCL(ncclBroadcast(from[i] + BYTES + shift, to[i] + BYTES + 100, (size_t)shift, ncclInt8, last, rank[i].comm,
                               rank[i].stream));
        }
        NCCL(ncclGroupEnd());
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {       /* each sends its buffer on, and gets its neighbour's in the same place */
        NCCL(ncclSend(to[i], 1000, ncclFloat32, (i + 1) % ranks, rank[i].comm, rank[i].stream));
        NCCL(ncclRecv(to[i] + 4000, 1000, ncclFloat32, (i + last) % ranks, rank[i].comm, rank[i].stream));
        NCCL(ncclReduceScatter(from[i], from[i] + i * 4, 1, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
        NCCL(ncclAllGather(to[i] + 8000 + i * 40, to[i] + 8000, 10, ncclFloat32, rank[i].comm, rank[i].stream));
    }
    NCCL(ncclGroupEnd());
}

SUITE_CASE(.run_all = any_bytes_hashed, .ranks = 3, .layout = ALL);
