/* Rank 1 frees the memory of its window before it deregisters it.
 * expect: DC306 certain ranks=1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { BYTES = 1 << 21 };

static void window_memory_freed(struct rank *me)
{
    ncclWindow_t window;
    void *memory;

    NCCL(ncclMemAlloc(&memory, BYTES));
    NCCL(ncclCommWindowRegister(me->comm, memory, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
#ifndef TWIN
    if (me->rank == 1) {
        NCCL(ncclMemFree(memory));      /* here */
        memory = NULL;
    }
#endif
    NCCL(ncclCommWindowDeregister(me->comm, window));
    if (memory)
        NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = window_memory_freed, .ranks = 2, .layout = PROCESSES);
