/* A permutation of experts in which some stay where they are: these ranks send to themselves, in a group.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 300 };

static void message_to_self(struct rank *me)
{
    static const int to[] = { 2, 1, 0, 3 };
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT);

    NCCL(ncclGroupStart());
    NCCL(ncclSend(out, COUNT, ncclFloat32, to[me->rank], me->comm, me->stream));
    NCCL(ncclRecv(in, COUNT, ncclFloat32, to[me->rank], me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = message_to_self, .ranks = 4, .layout = THREADS);
