/* Two GPUs that do not reach each other (PCIe ACS, a firewall): the very first AllReduce has been issued and begun on both ranks,
 * and never ends. The link is emulated at a byte per second.
 * expect: DC211 possible ranks=0-1 place=here
 * fix: NCCL_P2P_DISABLE=1
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

#ifndef TWIN
__attribute__((constructor)) static void cut_the_link(void)
{
    setenv("DDPCHECK_EMU_LINK_RATE", "0-1=1", 1);
}
#endif

static void first_operation_never_ends(struct rank *me)
{
    float *x = suite_floats(COUNT);

    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream)); /* here */
}

SUITE_CASE(.run = first_operation_never_ends, .ranks = 2, .layout = PROCESSES);
