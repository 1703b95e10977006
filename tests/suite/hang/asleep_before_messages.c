/* Rank 0 reads from a disk that does not answer; the others wait in the next AllReduce, and messages, one of them for rank 0,
 * are queued behind it. It is the AllReduce that they stand in.
 * expect: DC201 possible ranks=0
 * says: ncclAllReduce(count=1000, float32, sum)
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000, FOREVER_MS = 3600 * 1000 };

static void load_batch(const struct rank *me, int step)
{
#ifndef TWIN
    if (step == 2 && me->rank == 0)
        suite_nap_ms(FOREVER_MS);
#else
    (void)me, (void)step;
#endif
}

static void reduce_gradients(struct rank *me, float *gradients)
{
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void pass_around(struct rank *me, float *out, float *in)
{
    NCCL(ncclGroupStart());
    NCCL(ncclSend(out, COUNT, ncclFloat32, (me->rank + 1) % me->ranks, me->comm, me->stream));
    NCCL(ncclRecv(in, COUNT, ncclFloat32, (me->rank + me->ranks - 1) % me->ranks, me->comm, me->stream));
    NCCL(ncclGroupEnd());
}

static void asleep_before_messages(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *out = suite_floats(COUNT), *in = suite_floats(COUNT);

    for (int step = 0; step < 4; step++) {
        load_batch(me, step);
        reduce_gradients(me, gradients);
        pass_around(me, out, in);
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = asleep_before_messages, .ranks = 3, .layout = PROCESSES);
