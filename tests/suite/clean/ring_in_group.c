/* All ranks send to the right before they receive from the left; the group makes it one exchange.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 20 };

static void ring_in_group(struct rank *me)
{
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT);

    for (int step = 0; step < me->ranks - 1; step++) {
        float *received = in;
        NCCL(ncclGroupStart());
        NCCL(ncclSend(out, COUNT, ncclFloat32, (me->rank + 1) % me->ranks, me->comm, me->stream));
        NCCL(ncclRecv(in, COUNT, ncclFloat32, (me->rank + me->ranks - 1) % me->ranks, me->comm, me->stream));
        NCCL(ncclGroupEnd());
        in = out;
        out = received;
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = ring_in_group, .ranks = 4, .layout = PROCESSES);
