/* Rank 1 forgets the last bucket in its group; its next group then comes at the wrong place.
 * expect: DC106 certain ranks=1
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 500, BUCKETS = 3 };

static void group_number_differs(struct rank *me)
{
    float *bucket = suite_floats((size_t)COUNT * BUCKETS);
#ifdef TWIN
    int buckets = BUCKETS;
#else
    int buckets = me->rank == 1 ? BUCKETS - 1 : BUCKETS;
#endif

    for (int step = 0; step < 2; step++) {
        NCCL(ncclGroupStart());
        for (int i = 0; i < buckets; i++)
            NCCL(ncclAllReduce(bucket + i * COUNT, bucket + i * COUNT, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclGroupEnd());
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = group_number_differs, .ranks = 4, .layout = PROCESSES);
