/* The first reduction never ends; a variable hides that the hosts have different network adapters. The emulator stands in
 * for the channel whose peer never comes.
 * expect: DC805 possible ranks=0-1
 * also: DC211 is the hang that it fits
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static void mismatch_of_adapters_ignored(struct rank *me)
{
#ifndef TWIN
    setenv("NCCL_IGNORE_NET_MISMATCH", "1", 1);
    setenv("DDPCHECK_EMU_LINK_RATE", "0-1=1", 1);
#endif
    float *bucket = suite_floats(COUNT);
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = mismatch_of_adapters_ignored, .ranks = 2, .layout = PROCESSES, .bare = true);
