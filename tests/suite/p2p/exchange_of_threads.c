/* Eight threads with a device each exchange halves with the partner across (rank ^ 4): all send first.
 * The twin lets the lower half receive first.
 * expect: DC203 certain ranks=0+4 place=exchange_of_threads
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 64 };

static void exchange_of_threads(struct rank *me)
{
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT);
    int partner = me->rank ^ 4;

#ifdef TWIN
    bool receive_first = me->rank < 4;
#else
    bool receive_first = false;
#endif
    if (receive_first)
        NCCL(ncclRecv(in, COUNT, ncclFloat32, partner, me->comm, me->stream));
    NCCL(ncclSend(out, COUNT, ncclFloat32, partner, me->comm, me->stream));
    if (!receive_first)
        NCCL(ncclRecv(in, COUNT, ncclFloat32, partner, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = exchange_of_threads, .ranks = 8, .layout = THREADS);
