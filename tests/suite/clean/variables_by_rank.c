/* Each rank has variables of its own, as launchers, hosts and loggers set them.
 * expect: none */
#include "tests/suite/suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100 };

static void variables_by_rank(struct rank *me)
{
    static const char *const own[] = {"LOCAL_RANK_OF_JOB", "NCCL_DEBUG_FILE", "NCCL_SOCKET_IFNAME",
                                      "NCCL_IB_HCA",       "NCCL_TOPO_FILE",  "CUDA_CACHE_PATH",
                                      "TORCH_LOGS",        "MASTER_NOTE"};
    float *bucket = suite_floats(COUNT);
    char value[32];

    snprintf(value, sizeof value, "own_%d", me->rank);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        setenv(own[i], value, 1);
    if (me->rank == 0)
        setenv("NCCL_DEBUG", "VERSION", 1);
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = variables_by_rank, .ranks = 2, .layout = PROCESSES, .bare = true);
