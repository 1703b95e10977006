/* A message never arrives, although both ranks have issued it: the release of NCCL hangs so with this variable. The
 * emulator stands in for that release and for the link that carries a byte per second.
 * expect: DC803 possible ranks=0-1
 * also: DC211 is the hang that it fits
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static void release_with_known_bug(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    setenv("DDPCHECK_EMU_NCCL_VERSION", "22602", 1);
    setenv("NCCL_CUMEM_ENABLE", "0", 1);
#ifndef TWIN
    setenv("DDPCHECK_EMU_LINK_RATE", "0-1=1", 1);
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
    if (me->rank == 0)
        NCCL(ncclSend(bucket, COUNT, ncclFloat32, 1, me->comm, me->stream));
    else
        NCCL(ncclRecv(bucket, COUNT, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = release_with_known_bug, .ranks = 2, .layout = PROCESSES, .bare = true);
