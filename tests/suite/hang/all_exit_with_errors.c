/* Rank 2 finds that its checkpoint is damaged and exits; the others exit when they learn of it. Nobody waits in
 * NCCL.
 * expect: DC205 certain ranks=2 place=load_checkpoint
 * says: exited with status 7
 * ends: error */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static struct rank *damaged;

/* The last of what exit() does. */
__attribute__((destructor)) static void inform_the_others(void)
{
    if (damaged)
        suite_tell(damaged, 0);
}

static void load_checkpoint(struct rank *me)
{
#ifndef TWIN
    if (me->rank == 2) {
        damaged = me;
        exit(7);
    }
    suite_await(me, 0);
    exit(1);
#else
    (void)me;
#endif
}

static void all_exit_with_errors(struct rank *me)
{
    float *weights = suite_floats(COUNT);

    NCCL(ncclBroadcast(weights, weights, COUNT, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    load_checkpoint(me);
}

SUITE_CASE(.run = all_exit_with_errors, .ranks = 4, .layout = PROCESSES);
