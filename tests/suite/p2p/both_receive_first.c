/* Both ranks of a pair wait for the other's message before they send their own.
 * expect: DC203 certain ranks=0+1 place=receive
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void receive(struct rank *me, int peer)
{
    float *in = suite_floats(COUNT);

    NCCL(ncclRecv(in, COUNT, ncclFloat32, peer, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void send(struct rank *me, int peer)
{
    float *out = suite_floats(COUNT);

    NCCL(ncclSend(out, COUNT, ncclFloat32, peer, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void both_receive_first(struct rank *me)
{
#ifdef TWIN
    if (me->rank == 0)
        send(me, 1);
#endif
    receive(me, 1 - me->rank);
#ifdef TWIN
    if (me->rank == 1)
#endif
        send(me, 1 - me->rank);
}

SUITE_CASE(.run = both_receive_first, .ranks = 2, .layout = PROCESSES);
