/* A function that copies to another GPU does not switch back; the kernel after it can't be launched.
 * expect: DC407 certain ranks=0-1 */
#include "tests/suite/suite.h"

#include "kernels/kernels.h"

enum { COUNT = 1000 };

static void device_left_switched(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *weights = suite_floats(COUNT), *copy;
    int other = 1 - me->rank;

    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaSetDevice(other));
    copy = suite_floats(COUNT);
    CUDA(cudaMemcpyPeer(copy, other, weights, me->rank, COUNT * sizeof *copy));
#ifdef TWIN
    CUDA(cudaSetDevice(me->rank));
#endif
    (void)kernels_add(COUNT, gradients, weights, me->stream);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = device_left_switched, .ranks = 2, .layout = PROCESSES);
