/* Each rank creates a communicator with the next rank, and then one with the rank before it: each waits for a rank that
 * waits for another one. PyTorch's first send or receive of two ranks does the same.
 * expect: DC209 possible ranks=0+1+2+3 place=create
 * ends: hang */
#include "tests/suite/suite.h"

enum { RANKS = 4 };

/* The communicator of `first` and the rank behind it. */
static void create(const struct rank *me, const ncclUniqueId id[RANKS], int first)
{
    ncclComm_t comm;
    NCCL(ncclCommInitRank(&comm, 2, id[first], me->rank != first));
    NCCL(ncclCommDestroy(comm));
}

static void pairs_in_a_ring(struct rank *me)
{
    ncclUniqueId id[RANKS];
    int previous = (me->rank + RANKS - 1) % RANKS;
#ifdef TWIN
    int first = me->rank % 2 ? previous : me->rank, second = me->rank % 2 ? me->rank : previous;
#else
    int first = me->rank, second = previous;
#endif

    for (int i = 0; i < RANKS; i++)
        id[i] = suite_id(me, i);
    create(me, id, first);
    create(me, id, second);
}

SUITE_CASE(.run = pairs_in_a_ring, .ranks = 4, .layout = PROCESSES, .bare = true);
