/* Rank 1 builds the model from an old configuration: its second parameter is smaller than the one that is broadcast.
 * expect: DC102 certain ranks=1 place=broadcast_parameters
 * ends: any */
#include "tests/suite/suite.h"

static void broadcast_parameters(struct rank *me, const size_t *shape, int count)
{
    for (int i = 0; i < count; i++) {
        float *parameter = suite_floats(shape[i]);
        NCCL(ncclBroadcast(parameter, parameter, shape[i], ncclFloat32, 0, me->comm, me->stream));
    }
}

static void build_model(struct rank *me)
{
    size_t shape[] = { 4096, 1024, 10 };

#ifndef TWIN
    if (me->rank == 1)
        shape[1] = 512;
#endif
    broadcast_parameters(me, shape, 3);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = build_model, .ranks = 2, .layout = PROCESSES);
