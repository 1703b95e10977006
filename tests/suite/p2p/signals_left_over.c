/* Rank 0 signals once more than rank 1 waits: the next user of this sigIdx would go on too early.
 * expect: DC113 possible ranks=0 place=here */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { ROUNDS = 3 };

static void signals_left_over(struct rank *me)
{
#ifdef TWIN
    int signals = ROUNDS;
#else
    int signals = ROUNDS + 1;
#endif
    ncclWaitSignalDesc_t wait = {.opCnt = 1, .peer = 0};

    for (int i = 0; me->rank == 0 && i < signals; i++)
        NCCL(ncclSignal(1, 0, 0, 0, me->comm, me->stream)); /* here */
    for (int i = 0; me->rank == 1 && i < ROUNDS; i++)
        NCCL(ncclWaitSignal(1, &wait, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = signals_left_over, .ranks = 2, .layout = PROCESSES);
