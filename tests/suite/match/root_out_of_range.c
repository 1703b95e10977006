/* The root is given as a rank of the whole job (4 to 7) in a communicator of four.
 * expect: DC111 certain ranks=0-3 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void root_out_of_range(struct rank *me)
{
    float *weights = suite_floats(COUNT);
#ifdef TWIN
    int root = 4 - 4;
#else
    int root = 4;
#endif

    (void)ncclBroadcast(weights, weights, COUNT, ncclFloat32, root, me->comm, me->stream); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = root_out_of_range, .ranks = 4, .layout = PROCESSES);
