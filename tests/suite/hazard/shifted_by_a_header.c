/* The result is written behind a header of 16 floats in the same buffer, over the end of what is sent.
 * expect: DC304 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000, HEADER = 16 };

static void shifted_by_a_header(struct rank *me)
{
    float *buffer = suite_floats(2 * COUNT);
#ifdef TWIN
    float *result = buffer + COUNT;
#else
    float *result = buffer + HEADER;
#endif

    NCCL(ncclAllReduce(buffer, result, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = shifted_by_a_header, .ranks = 2, .layout = THREADS);
