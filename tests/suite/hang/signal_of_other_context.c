/* Rank 0 waits for both neighbours in one call. Rank 2 signals, as it believes, but with another
 * sigIdx: its stream goes on, and so does it.
 * expect: DC113 certain ranks=0 place=wait_for_both
 * ends: hang */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

static void wait_for_both(struct rank *me)
{
    ncclWaitSignalDesc_t waits[] = {{.opCnt = 1, .peer = 1}, {.opCnt = 1, .peer = 2}};

    NCCL(ncclWaitSignal(2, waits, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void signal_of_other_context(struct rank *me)
{
#ifdef TWIN
    int index = 0;
#else
    int index = me->rank == 2;
#endif
    if (me->rank == 0)
        wait_for_both(me);
    else
        NCCL(ncclSignal(0, index, 0, 0, me->comm, me->stream));
}

SUITE_CASE(.run = signal_of_other_context, .ranks = 3, .layout = PROCESSES);
