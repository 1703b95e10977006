/* Each rank broadcasts its part in turn, with buffers that only the root fills: roots and pointers differ between
 * calls and ranks, never between the ranks of one call.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 512 };

static void root_by_turns(struct rank *me)
{
    float *own = suite_floats(COUNT), *all = suite_floats((size_t)COUNT * me->ranks);

    NCCL(ncclGroupStart());
    for (int root = 0; root < me->ranks; root++)
        NCCL(ncclBroadcast(root == me->rank ? own : NULL, all + (size_t)root * COUNT, COUNT, ncclFloat32, root,
                           me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = root_by_turns, .ranks = 4, .layout = PROCESSES);
