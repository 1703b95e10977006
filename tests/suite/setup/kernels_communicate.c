/* A device communicator is asked for: what kernels send through it is no call of the host.
 * expect: DC903 certain ranks=0-1 */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };
struct ncclDevComm;
struct ncclDevCommRequirements;
ncclResult_t ncclDevCommCreate(ncclComm_t, const struct ncclDevCommRequirements *, struct ncclDevComm *);

static void kernels_communicate(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

#ifndef TWIN
    static char requirements[1024], made[4096]; /* nccl_device.h is C++ */

    NCCL(ncclDevCommCreate(me->comm, (void *)requirements, (void *)made));
#endif
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = kernels_communicate, .ranks = 2, .layout = PROCESSES);
