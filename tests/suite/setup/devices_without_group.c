/* One thread initialises two GPUs one after the other: the first call waits for the second, which the same thread would make.
 * expect: DC209 possible ranks=0
 * ends: hang */
#include "tests/suite/suite.h"

static void devices_without_group(struct rank *rank, int ranks)
{
    ncclUniqueId id;

    NCCL(ncclGetUniqueId(&id));
#ifdef TWIN
    NCCL(ncclGroupStart());
#endif
    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        NCCL(ncclCommInitRank(&rank[i].comm, ranks, id, i));
    }
#ifdef TWIN
    NCCL(ncclGroupEnd());
#endif
}

SUITE_CASE(.run_all = devices_without_group, .ranks = 2, .layout = ALL, .bare = true);
