/* Rank 1 makes no device communicator, because it launches no kernel that communicates; the others
 * wait for it in ncclDevCommCreate.
 * expect: DC201 certain ranks=1
 * fix: ncclDevCommCreate on every rank
 * ends: hang */
#include "tests/suite/suite.h"

struct ncclDevCommRequirements;
struct ncclDevComm;
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
                               struct ncclDevComm *made);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *made);

static void make_device_comm(struct rank *me)
{
    static char requirements[1024], made[4096]; /* nccl_device.h is C++ */

    NCCL(ncclDevCommCreate(me->comm, (void *)requirements, (void *)made));
    NCCL(ncclDevCommDestroy(me->comm, (void *)made));
}

static void device_comm_by_some(struct rank *me)
{
    float *sum = suite_floats(1);

#ifdef TWIN
    make_device_comm(me);
#else
    if (me->rank != 1)
        make_device_comm(me);
#endif
    NCCL(ncclAllReduce(sum, sum, 1, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = device_comm_by_some, .ranks = 3, .layout = PROCESSES);
