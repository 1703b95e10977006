/* A ring exchange in one group sends from the buffer that it receives into.
 * expect: DC305 certain ranks=0-3 */
#include "tests/suite/suite.h"

enum { COUNT = 4096 };

static void ring_receives_into_what_it_sends(struct rank *me)
{
    float *out = suite_floats(COUNT);
#ifdef TWIN
    float *in = suite_floats(COUNT);
#else
    float *in = out;
#endif

    NCCL(ncclGroupStart());
    NCCL(ncclSend(out, COUNT, ncclFloat32, (me->rank + 1) % me->ranks, me->comm, me->stream));
    NCCL(ncclRecv(in, COUNT, ncclFloat32, (me->rank + me->ranks - 1) % me->ranks, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = ring_receives_into_what_it_sends, .ranks = 4, .layout = PROCESSES);
