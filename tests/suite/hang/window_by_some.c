/* Every rank has to register the window; rank 1 goes on to the AllReduce and waits for it.
 * expect: DC201|DC202 certain ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void window_by_some(struct rank *me)
{
    float *bucket;
    ncclWindow_t window;

    NCCL(ncclMemAlloc((void **)&bucket, COUNT * sizeof *bucket));
    CUDA(cudaMemset(bucket, 0, COUNT * sizeof *bucket));
    CUDA(cudaDeviceSynchronize());
#ifndef TWIN
    if (me->rank != 1)
#endif
        NCCL(ncclCommWindowRegister(me->comm, bucket, COUNT * sizeof *bucket, &window,
                                    NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclMemFree(bucket));
#endif
}

SUITE_CASE(.run = window_by_some, .ranks = 3, .layout = PROCESSES);
