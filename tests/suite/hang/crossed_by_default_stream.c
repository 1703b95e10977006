/* One of the two operations runs on the default stream, which waits for all blocking streams and holds them up: that
 * orders the two, differently on rank 0. Nothing waits on the host; the ranks only ask whether it is done.
 * expect: DC202 certain ranks=0+1-2 place=crossed_by_default_stream
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1024 };

static void crossed_by_default_stream(struct rank *me)
{
    ncclComm_t second;
    cudaStream_t blocking;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &second, NULL));
    CUDA(cudaStreamCreate(&blocking));
#ifdef TWIN
    bool turned = false;
#else
    bool turned = me->rank == 0;
#endif
    float *one = suite_floats(COUNT), *other = suite_floats(COUNT);

    CUDA(cudaDeviceSynchronize());
    NCCL(ncclAllReduce(one, one, COUNT, ncclFloat32, ncclSum, turned ? second : me->comm, blocking));
    NCCL(ncclAllReduce(other, other, COUNT, ncclFloat32, ncclSum, turned ? me->comm : second, NULL));
    while (cudaStreamQuery(blocking) == cudaErrorNotReady || cudaStreamQuery(NULL) == cudaErrorNotReady)
        suite_nap_ms(5);
    NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = crossed_by_default_stream, .ranks = 3, .layout = PROCESSES);
