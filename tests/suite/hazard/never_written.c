/* Rank 0 broadcasts parameters that it never loaded.
 * expect: DC310 possible ranks=0 place=here
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 4096 };

static void never_written(struct rank *me)
{
    float *parameters;

    CUDA(cudaMalloc((void **)&parameters, COUNT * sizeof *parameters));
#ifdef TWIN
    CUDA(cudaMemsetAsync(parameters, 0, COUNT * sizeof *parameters, me->stream));
#endif
    NCCL(ncclBroadcast(parameters, parameters, COUNT, ncclFloat32, 0, me->comm, me->stream));       /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = never_written, .ranks = 2, .layout = PROCESSES);
