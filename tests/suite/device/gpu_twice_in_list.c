/* The list of GPUs given to ncclCommInitAll names one twice.
 * expect: DC405 certain
 * ends: any */
#include "tests/suite/suite.h"

static void gpu_twice_in_list(struct rank *rank, int ranks)
{
    ncclComm_t comm[3];
#ifdef TWIN
    int devices[] = { 0, 1, 2 };
#else
    int devices[] = { 0, 1, 1 };
#endif

    NCCL(ncclCommInitAll(comm, ranks, devices));
    for (int i = 0; i < ranks; i++)
        rank[i].comm = comm[i];
}

SUITE_CASE(.run_all = gpu_twice_in_list, .ranks = 3, .layout = ALL, .bare = true);
