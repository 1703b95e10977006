/* Every rank but rank 3 takes the parameters from rank 0; rank 3 from rank 1.
 * expect: DC105 certain ranks=3 place=here
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void root_differs(struct rank *me)
{
    float *parameters = suite_floats(COUNT);

#ifdef TWIN
    int root = 0;
#else
    int root = me->rank == 3 ? 1 : 0;
#endif
    NCCL(ncclBroadcast(parameters, parameters, COUNT, ncclFloat32, root, me->comm, me->stream));    /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = root_differs, .ranks = 4, .layout = PROCESSES);
