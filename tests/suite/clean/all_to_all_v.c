/* An uneven AlltoAllv of sends and receives in a group; empty messages are left out, and every rank begins with another
 * peer.
 * expect: none */
#include "tests/suite/suite.h"

enum { MOST = 1024 };

static size_t tokens(int from, int to)
{
    return (size_t)((from * 7 + to * 3) % 5) * 100;
}

static void all_to_all_v(struct rank *me)
{
    float *out = suite_floats((size_t)MOST * me->ranks), *in = suite_floats((size_t)MOST * me->ranks);

    NCCL(ncclGroupStart());
    for (int i = 0; i < me->ranks; i++) {
        int peer = (me->rank + i) % me->ranks;
        if (tokens(me->rank, peer))
            NCCL(ncclSend(out + peer * MOST, tokens(me->rank, peer), ncclFloat32, peer, me->comm, me->stream));
        if (tokens(peer, me->rank))
            NCCL(ncclRecv(in + peer * MOST, tokens(peer, me->rank), ncclFloat32, peer, me->comm, me->stream));
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = all_to_all_v, .ranks = 8, .layout = PROCESSES);
