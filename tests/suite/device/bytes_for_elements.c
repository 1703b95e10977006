/* All ranks pass the size in bytes as the count.
 * expect: DC406 certain ranks=0-3 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 18 };

static void bytes_for_elements(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
#ifdef TWIN
    size_t count = COUNT;
#else
    size_t count = COUNT * sizeof *bucket;
#endif

    suite_meet(me, 0);
    NCCL(ncclBroadcast(bucket, bucket, count, ncclFloat32, 0, me->comm, me->stream));   /* here */
    suite_meet(me, 1);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = bytes_for_elements, .ranks = 4, .layout = PROCESSES);
