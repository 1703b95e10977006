/* After the first step every rank waits for a file server that does not answer. Nobody waits in NCCL or CUDA: that the job
 * stands still shows when the time is over.
 * expect: DC211 possible ranks=0-2
 * ends: any
 * options: --timeout 5
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 100, FOREVER_MS = 3600 * 1000 };

static void read_next_batch(void)
{
#ifndef TWIN
    suite_nap_ms(FOREVER_MS);
#endif
}

static void all_stuck_in_host_code(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    for (int step = 0; step < 2; step++) {
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        read_next_batch();
    }
}

SUITE_CASE(.run = all_stuck_in_host_code, .ranks = 3, .layout = PROCESSES);
