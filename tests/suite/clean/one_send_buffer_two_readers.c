/* Two communicators on two streams read one send buffer at the same time and write disjoint halves of another; all ranks
 * issue them in one order, with the host's wait between.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void one_send_buffer_two_readers(struct rank *me)
{
    float *input = suite_floats(COUNT), *output = suite_floats(2 * COUNT);

    for (int half = 0; half < 2; half++)
        NCCL(ncclAllReduce(input, output + half * COUNT, COUNT, ncclFloat32, half ? ncclMax : ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclGroupStart());
    for (int peer = 0; peer < me->ranks; peer++) {      /* one buffer sent to everybody */
        NCCL(ncclSend(input, COUNT / 4, ncclFloat32, peer, me->comm, me->stream));
        NCCL(ncclRecv(output + peer * COUNT / 4, COUNT / 4, ncclFloat32, peer, me->comm, me->stream));
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = one_send_buffer_two_readers, .ranks = 4, .layout = PROCESSES);
