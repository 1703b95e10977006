/* Rank 1 validates on a batch less in the second epoch, and is in the next epoch's training where the others gather a score.
 * expect: DC101 certain ranks=1
 * origin: rank 1 left validate() after 3 calls at .. the others make a 4th
 * fix: the number of batches
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 300, EPOCHS = 3, BATCHES = 4 };

static void train(struct rank *me, float *data)
{
    NCCL(ncclAllReduce(data, data, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void gather_score(struct rank *me, float *data)
{
    NCCL(ncclAllGather(data + me->rank, data, 1, ncclFloat32, me->comm, me->stream));
}

static void validate(struct rank *me, float *data, int batches)
{
    for (int batch = 0; batch < batches; batch++)
        gather_score(me, data);
    CUDA(cudaStreamSynchronize(me->stream));
}

static void batch_less_in_validation(struct rank *me)
{
    float *data = suite_floats(COUNT);

    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int batches = BATCHES;
#ifndef TWIN
        batches -= me->rank == 1 && epoch == 1;
#endif
        train(me, data);
        validate(me, data, batches);
    }
    train(me, data);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = batch_less_in_validation, .ranks = 3, .layout = PROCESSES);
