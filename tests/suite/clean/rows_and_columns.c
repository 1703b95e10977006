/* A grid of 2 x 4 ranks: tensor parallel along the rows, data parallel along the columns, on a stream each, and the host
 * waits in between. Which row's operation comes first differs, for they are different communicators.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 512, COLUMNS = 4 };

static void rows_and_columns(struct rank *me)
{
    float *activations = suite_floats(COUNT), *gradients = suite_floats(COUNT);
    ncclComm_t row, column;

    NCCL(ncclCommSplit(me->comm, me->rank / COLUMNS, me->rank, &row, NULL));
    NCCL(ncclCommSplit(me->comm, me->rank % COLUMNS, -me->rank, &column, NULL));
    for (int layer = 0; layer < 3; layer++) {
        NCCL(ncclAllReduce(activations, activations, COUNT, ncclFloat32, ncclSum, row, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, column, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
    NCCL(ncclCommDestroy(row));
    NCCL(ncclCommDestroy(column));
}

SUITE_CASE(.run = rows_and_columns, .ranks = 8, .layout = PROCESSES);
