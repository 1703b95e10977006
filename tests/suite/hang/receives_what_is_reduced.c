/* Rank 1 waits for a message of rank 0, which comes only after the AllReduce that rank 0 waits in.
 * expect: DC201|DC202 certain place=receives_what_is_reduced
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void receives_what_is_reduced(struct rank *me)
{
    float *message = suite_floats(COUNT), *bucket = suite_floats(COUNT);
#ifdef TWIN
    bool message_first = true;
#else
    bool message_first = me->rank == 1;
#endif

    for (int turn = 0; turn < 2; turn++) {
        if ((turn == 0) != message_first)
            NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        else if (me->rank == 0)
            NCCL(ncclSend(message, COUNT, ncclFloat32, 1, me->comm, me->stream));
        else if (me->rank == 1)
            NCCL(ncclRecv(message, COUNT, ncclFloat32, 0, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = receives_what_is_reduced, .ranks = 3, .layout = PROCESSES);
