/* A pipeline of three stages with two micro-batches. The middle stage sends back the gradient of the first one before it
 * takes the second activation; the first stage sends both activations and then takes the gradients. The two sends of
 * rank 0 and rank 1 to each other meet. The twin takes all activations first.
 * expect: DC203 certain ranks=0+1 place=pass
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 256 };

static void pass(struct rank *me, int from, int to)
{
    float *x = suite_floats(COUNT);

    if (from == me->rank)
        NCCL(ncclSend(x, COUNT, ncclFloat32, to, me->comm, me->stream));
    else
        NCCL(ncclRecv(x, COUNT, ncclFloat32, from, me->comm, me->stream));
}

static void pipeline_order(struct rank *me)
{
    if (me->rank == 0) {
        pass(me, 0, 1);
        pass(me, 0, 1);
        pass(me, 1, 0);
        pass(me, 1, 0);
    } else if (me->rank == 1) {
        pass(me, 0, 1);
#ifdef TWIN
        pass(me, 0, 1);
        pass(me, 1, 2);
        pass(me, 1, 0);
#else
        pass(me, 1, 2);
        pass(me, 1, 0);
        pass(me, 0, 1);
#endif
        pass(me, 1, 0);
    } else {
        pass(me, 1, 2);
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = pipeline_order, .ranks = 3, .layout = PROCESSES);
