/* The send buffer of a ReduceScatter has room for one rank's part, in memory of ncclMemAlloc.
 * expect: DC406 certain ranks=0-1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 2 << 20 };

static void nccl_memory_past_the_end(struct rank *me)
{
    float *all, *part = suite_floats(COUNT);
    size_t count = COUNT;

#ifdef TWIN
    count *= (size_t)me->ranks;
#endif
    NCCL(ncclMemAlloc((void **)&all, count * sizeof *all));
    CUDA(cudaMemset(all, 0, count * sizeof *all));
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclReduceScatter(all, part, COUNT, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclMemFree(all));
}

SUITE_CASE(.run = nccl_memory_past_the_end, .ranks = 2, .layout = PROCESSES);
