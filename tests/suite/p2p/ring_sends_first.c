/* Every rank of a ring sends to its right neighbour before it receives from its left one.
 * expect: DC203 certain ranks=0+1+2+3 place=ring_sends_first
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 16 };

static void ring_sends_first(struct rank *me)
{
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT);
    int right = (me->rank + 1) % me->ranks, left = (me->rank + me->ranks - 1) % me->ranks;

#ifdef TWIN
    NCCL(ncclGroupStart());
#endif
    NCCL(ncclSend(out, COUNT, ncclFloat32, right, me->comm, me->stream));
    NCCL(ncclRecv(in, COUNT, ncclFloat32, left, me->comm, me->stream));
#ifdef TWIN
    NCCL(ncclGroupEnd());
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = ring_sends_first, .ranks = 4, .layout = PROCESSES);
