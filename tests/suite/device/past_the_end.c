/* Rank 1 allocates one element too few and reduces past the end of its bucket.
 * expect: DC406 certain ranks=1 place=here
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 20 };

static void past_the_end(struct rank *me)
{
#ifdef TWIN
    float *bucket = suite_floats(COUNT);
#else
    float *bucket = suite_floats(me->rank == 1 ? COUNT - 1 : COUNT);
#endif

    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = past_the_end, .ranks = 2, .layout = PROCESSES);
