/* An AlltoAllv of sends and receives, in one process: rank 1 tells nobody that it sends rank 0 more than was agreed.
 * expect: DC107 certain ranks=0+1
 * ends: any */
#include "tests/suite/suite.h"

enum { MOST = 1024 };

/* What `from` sends to `to`: agreed upon by all. */
static size_t agreed(int from, int to)
{
    return 64 * (size_t)(1 + from + 2 * to);
}

static void all_to_all_v_sizes(struct rank *rank, int ranks)
{
    float *out[4], *in[4];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        out[i] = suite_floats((size_t)MOST * ranks);
        in[i] = suite_floats((size_t)MOST * ranks);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        for (int peer = 0; peer < ranks; peer++) {
#ifdef TWIN
            size_t count = agreed(i, peer);
#else
            size_t count = i == 1 && peer == 0 ? agreed(i, peer) + 8 : agreed(i, peer);
#endif
            NCCL(ncclSend(out[i] + peer * MOST, count, ncclFloat32, peer, rank[i].comm, rank[i].stream));
            NCCL(ncclRecv(in[i] + peer * MOST, agreed(peer, i), ncclFloat32, peer, rank[i].comm, rank[i].stream));
        }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = all_to_all_v_sizes, .ranks = 3, .layout = ALL);
