/* Saving a checkpoint ends in a barrier, and only rank 0 saves. Its barrier meets the others' next loss, and so on: it hangs at
 * the very end, in a call that is right.
 * expect: DC206|DC201 certain ranks=0
 * origin: rank 0 made one call more (or the others left out one) at #9 .. it was at save() .. the others at reduce_loss()
 * ends: hang */
#include "tests/suite/suite.h"

enum { STEPS = 5 };

static void save(struct rank *me, float *token)
{
    NCCL(ncclAllReduce(token, token, 1, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void reduce_loss(struct rank *me, float *loss)
{
    NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void count_tokens(struct rank *me, float *tokens)
{
    NCCL(ncclAllReduce(tokens, tokens, 1, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void clip_norm(struct rank *me, float *norm)
{
    NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void checkpoint_on_one_rank(struct rank *me)
{
    float *token = suite_floats(1), *loss = suite_floats(1);

    for (int step = 0; step < STEPS; step++) {
        reduce_loss(me, loss);
        count_tokens(me, loss);
        clip_norm(me, loss);
#ifdef TWIN
        if (step == 2)
#else
        if (step == 2 && me->rank == 0)
#endif
            save(me, token);
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = checkpoint_on_one_rank, .ranks = 3, .layout = PROCESSES);
