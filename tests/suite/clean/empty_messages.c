/* An all-to-all in which most messages are empty, but each is sent and received.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void empty_messages(struct rank *me)
{
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT);

    for (int step = 0; step < 3; step++) {
        NCCL(ncclGroupStart());
        for (int peer = 0; peer < me->ranks; peer++) {
            NCCL(ncclSend(out, (me->rank + peer + step) % 3 ? 0 : COUNT, ncclFloat32, peer, me->comm, me->stream));
            NCCL(ncclRecv(in, (me->rank + peer + step) % 3 ? 0 : COUNT, ncclFloat32, peer, me->comm, me->stream));
        }
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = empty_messages, .ranks = 1, .layout = PROCESSES);
