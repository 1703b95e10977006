/* Mixed precision is on for one rank only: it reduces fp16 where the others reduce fp32.
 * expect: DC103 certain ranks=1 place=here
 * cause: Mixed precision
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void precision_differs(struct rank *me)
{
    void *gradients = suite_floats(COUNT);

#ifdef TWIN
    ncclDataType_t type = ncclFloat32;
#else
    ncclDataType_t type = me->rank == 1 ? ncclFloat16 : ncclFloat32;
#endif
    NCCL(ncclAllReduce(gradients, gradients, COUNT, type, ncclSum, me->comm, me->stream));      /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = precision_differs, .ranks = 4, .layout = PROCESSES);
