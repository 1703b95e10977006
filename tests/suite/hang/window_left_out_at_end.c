/* Rank 1 registers no window, and ends.
 * expect: DC201 certain ranks=1
 * says: never called it
 * fix: ncclCommWindowRegister
 * ends: hang */
#include "tests/suite/suite.h"

enum { BYTES = 1 << 21 };

static void window_left_out_at_end(struct rank *me)
{
    ncclWindow_t window;
    void *bucket;

#ifndef TWIN
    if (me->rank == 1)
        return;
#endif
    NCCL(ncclMemAlloc(&bucket, BYTES));
    NCCL(ncclCommWindowRegister(me->comm, bucket, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclMemFree(bucket));
}

SUITE_CASE(.run = window_left_out_at_end, .ranks = 3, .layout = PROCESSES);
