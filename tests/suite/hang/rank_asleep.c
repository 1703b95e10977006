/* Rank 0 goes to write a checkpoint to a disk that does not answer; the others wait in the next AllReduce. Only its silence
 * says so.
 * expect: DC201 possible ranks=0
 * fix: Find out why the missing rank does not get on
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000, FOREVER_MS = 3600 * 1000 };

static void write_checkpoint(void)
{
#ifndef TWIN
    suite_nap_ms(FOREVER_MS);
#endif
}

static void rank_asleep(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < 4; step++) {
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        if (step == 2 && me->rank == 0)
            write_checkpoint();
    }
}

SUITE_CASE(.run = rank_asleep, .ranks = 4, .layout = PROCESSES);
