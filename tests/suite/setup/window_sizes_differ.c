/* Rank 1 registers half of the memory that the others register as a window.
 * expect: DC109 possible ranks=0+1 place=window_sizes_differ */
#include "tests/suite/suite.h"

enum { BYTES = 1 << 21 };

static void window_sizes_differ(struct rank *me)
{
    ncclWindow_t window;
    size_t bytes = BYTES;
    void *memory;

#ifndef TWIN
    if (me->rank == 1)
        bytes = BYTES / 2;
#endif
    NCCL(ncclMemAlloc(&memory, BYTES));
    NCCL(ncclCommWindowRegister(me->comm, memory, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = window_sizes_differ, .ranks = 2, .layout = PROCESSES);
