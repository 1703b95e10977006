/* Only the members of the new group call ncclCommSplit; the others go on to the next AllReduce.
 * expect: DC109 certain ranks=2-3
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void split_by_members_only(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclComm_t group = NULL;
    bool is_member = me->rank < 2;

#ifdef TWIN
    NCCL(ncclCommSplit(me->comm, is_member ? 0 : NCCL_SPLIT_NOCOLOR, me->rank, &group, NULL));
#else
    if (is_member)
        NCCL(ncclCommSplit(me->comm, 0, me->rank, &group, NULL));
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (group)
        NCCL(ncclCommDestroy(group));
}

SUITE_CASE(.run = split_by_members_only, .ranks = 4, .layout = PROCESSES);
