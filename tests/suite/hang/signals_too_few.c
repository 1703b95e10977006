/* Rank 1 waits for three signals of rank 0, which sends two.
 * expect: DC113 certain ranks=1 place=here
 * fix: as many signals
 * ends: hang
 * minimal: yes */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

static void signals_too_few(struct rank *me)
{
#ifdef TWIN
    int sent = 3;
#else
    int sent = 2;
#endif
    ncclWaitSignalDesc_t wait = {.opCnt = 3, .peer = 0};

    for (int i = 0; me->rank == 0 && i < sent; i++)
        NCCL(ncclSignal(1, 0, 0, 0, me->comm, me->stream));
    if (me->rank == 1)
        NCCL(ncclWaitSignal(1, &wait, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = signals_too_few, .ranks = 2, .layout = PROCESSES);
