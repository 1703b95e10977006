/* One process, all devices: a helper opens a group of its own within the group and forgets to end it on the way out, so
 * nothing is ever launched; the streams are empty, every wait returns at once, and the program ends well.
 * expect: DC207 certain ranks=0 place=more_starts_than_ends */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void begin_bucket(void)
{
#ifndef TWIN
    NCCL(ncclGroupStart());
#endif
}

static void more_starts_than_ends(struct rank *rank, int ranks)
{
    float *gradients[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        gradients[i] = suite_floats(COUNT);
    }
    NCCL(ncclGroupStart());
    begin_bucket();
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAllReduce(gradients[i], gradients[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
    NCCL(ncclGroupEnd());
#ifndef TWIN
    for (int i = 0; i < ranks; i++)
        rank[i].comm = NULL;
#endif
}

SUITE_CASE(.run_all = more_starts_than_ends, .ranks = 3, .layout = ALL);
