/* NCCL's in-place forms, which differ per kind: AllGather sends from its part of the receive buffer, ReduceScatter receives
 * into its part of the send buffer, and the roots of Gather and Scatter use a part in the same way.
 * expect: none */
#include "tests/suite/suite.h"

enum { PART = 256 };

static void in_place_gathers_and_scatters(struct rank *me)
{
    float *whole = suite_floats((size_t)PART * me->ranks), *own = whole + (size_t)PART * me->rank;
    float *other = suite_floats((size_t)PART * me->ranks);

    NCCL(ncclAllGather(own, whole, PART, ncclFloat32, me->comm, me->stream));
    NCCL(ncclReduceScatter(whole, own, PART, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclGather(own, whole, PART, ncclFloat32, 1, me->comm, me->stream));
    NCCL(ncclScatter(whole, own, PART, ncclFloat32, 2, me->comm, me->stream));
    /* AlltoAll has no form in place. */
    NCCL(ncclAlltoAll(whole, other, PART, ncclFloat32, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = in_place_gathers_and_scatters, .ranks = 4, .layout = THREADS);
