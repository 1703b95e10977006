/* Many PreMulSum operators live at one time, and each rank makes them in another order.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100, OPERATORS = 100 };

static void many_operators(struct rank *me)
{
    static ncclRedOp_t operator[OPERATORS];
    float *gradients = suite_floats(COUNT);

    for (int i = 0; i < OPERATORS; i++) {
        int which = me->rank == 0 ? i : OPERATORS - 1 - i;
        float scale = 1.0f / (float)(which + 1);
        NCCL(ncclRedOpCreatePreMulSum(&operator[which], &scale, ncclFloat32, ncclScalarHostImmediate, me->comm));
    }
    for (int i = 0; i < OPERATORS; i += 10)
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, operator[i], me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    for (int i = 0; i < OPERATORS; i++)
        NCCL(ncclRedOpDestroy(operator[i], me->comm));
}

SUITE_CASE(.run = many_operators, .ranks = 2, .layout = PROCESSES);
