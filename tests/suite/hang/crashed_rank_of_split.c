/* Rank 5 crashes in the middle of the tensor parallel operations of its row; the row waits, and with it the columns.
 * expect: DC205 certain ranks=5
 * ends: hang */
#include "tests/suite/suite.h"

#include <signal.h>

enum { COUNT = 256, COLUMNS = 4 };

static void crashed_rank_of_split(struct rank *me)
{
    float *activations = suite_floats(COUNT);
    ncclComm_t row, column;

    NCCL(ncclCommSplit(me->comm, me->rank / COLUMNS, me->rank, &row, NULL));
    NCCL(ncclCommSplit(me->comm, me->rank % COLUMNS, me->rank, &column, NULL));
    for (int layer = 0; layer < 3; layer++) {
#ifndef TWIN
        if (layer == 1 && me->rank == 5)
            raise(SIGSEGV);
#endif
        NCCL(ncclAllReduce(activations, activations, COUNT, ncclFloat32, ncclSum, row, me->stream));
        NCCL(ncclAllReduce(activations, activations, COUNT, ncclFloat32, ncclAvg, column, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
    NCCL(ncclCommDestroy(row));
    NCCL(ncclCommDestroy(column));
}

SUITE_CASE(.run = crashed_rank_of_split, .ranks = 8, .layout = PROCESSES);
