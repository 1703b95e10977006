/* In its third round rank 0 of three uses the two communicators in the other order, from lines of its own. It would be the missing
 * rank of either operation; that it goes another way than before shows that it left no call out.
 * expect: DC202 certain ranks=0+1-2 place=reduce_turned
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000, ROUNDS = 4 };

static void reduce(struct rank *me, ncclComm_t comm, float *x)
{
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

__attribute__((noinline)) static void reduce_turned(struct rank *me, ncclComm_t first,
                                                    ncclComm_t second, float *x)
{
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, first, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    reduce(me, second, x);
}

static void crossed_once_of_three(struct rank *me)
{
    float *x = suite_floats(COUNT);
    ncclComm_t second;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &second, NULL));
    for (int i = 0; i < ROUNDS; i++) {
#ifdef TWIN
        bool turned = false;
#else
        bool turned = me->rank == 0 && i == 2;
#endif
        if (turned) {
            reduce_turned(me, second, me->comm, x);
            continue;
        }
        reduce(me, me->comm, x);
        reduce(me, second, x);
    }
    NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = crossed_once_of_three, .ranks = 3, .layout = PROCESSES);
