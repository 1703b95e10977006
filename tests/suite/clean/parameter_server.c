/* Rank 0 serves: it receives from the rank whose turn it is and answers. Workers send different numbers of messages.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static int turns(int worker)
{
    return 1 + worker % 3;
}

static void parameter_server(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *weights = suite_floats(COUNT);

    for (int turn = 0; turn < 3; turn++)
        for (int worker = 1; worker < me->ranks; worker++) {
            if (turn >= turns(worker) || (me->rank != 0 && me->rank != worker))
                continue;
            if (me->rank == 0) {
                NCCL(ncclRecv(gradients, COUNT, ncclFloat32, worker, me->comm, me->stream));
                NCCL(ncclSend(weights, COUNT, ncclFloat32, worker, me->comm, me->stream));
            } else {
                NCCL(ncclSend(gradients, COUNT, ncclFloat32, 0, me->comm, me->stream));
                NCCL(ncclRecv(weights, COUNT, ncclFloat32, 0, me->comm, me->stream));
            }
        }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = parameter_server, .ranks = 5, .layout = PROCESSES);
