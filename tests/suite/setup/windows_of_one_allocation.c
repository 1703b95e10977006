/* Two windows are the halves of one allocation, which NCCL before 2.31.2 may confuse.
 * expect: DC113 possible ranks=0-1 place=here
 * fix: whole allocation as one window */
#include "tests/suite/suite.h"

enum { BYTES = 1 << 16 };

static void windows_of_one_allocation(struct rank *me)
{
    char *memory, *second;
    ncclWindow_t window[2];

    NCCL(ncclMemAlloc((void **)&memory, 2 * BYTES));
#ifdef TWIN
    NCCL(ncclMemAlloc((void **)&second, 2 * BYTES));
#else
    second = memory + BYTES;
#endif
    NCCL(ncclCommWindowRegister(me->comm, memory, BYTES, &window[0], NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowRegister(me->comm, second, BYTES, &window[1], NCCL_WIN_COLL_SYMMETRIC)); /* here */
    NCCL(ncclCommWindowDeregister(me->comm, window[1]));
    NCCL(ncclCommWindowDeregister(me->comm, window[0]));
    NCCL(ncclMemFree(memory));
#ifdef TWIN
    NCCL(ncclMemFree(second));
#endif
}

SUITE_CASE(.run = windows_of_one_allocation, .ranks = 2, .layout = PROCESSES);
