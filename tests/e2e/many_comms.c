/* Each round makes a communicator, reduces on it, and ends it: by ncclCommInitRank, ncclCommSplit
 * or ncclCommShrink, destroyed, or aborted. COMMS_ROUNDS says how many rounds, COMMS_KEEPS which of
 * them leave their communicator as it is (each n-th; 0: none). TWIN is correct; else one that was
 * destroyed is used at the end. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/suite/suite.h"

enum { COUNT = 64, WAYS = 4, ABORTS = 5 };

static struct id_board {
    ncclUniqueId id;
    atomic_int posted, taken; /* rounds */
} * board;

/* Runs before the ranks are forked. */
static void __attribute__((constructor)) share_ids(void)
{
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        suite_failed(__FILE__, __LINE__, "mmap", "failed");
}

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

static ncclComm_t init_by_id(struct rank *me, int *made)
{
    ncclComm_t comm;

    if (me->rank == 0) {
        while (atomic_load(&board->taken) < *made * me->ranks)
            ;
        NCCL(ncclGetUniqueId(&board->id));
        atomic_store(&board->posted, *made + 1);
    }
    while (atomic_load(&board->posted) <= *made)
        ;
    ncclUniqueId id = board->id;
    atomic_fetch_add(&board->taken, 1);
    ++*made;
    NCCL(ncclCommInitRank(&comm, me->ranks, id, me->rank));
    return comm;
}

static ncclComm_t make(struct rank *me, int round, int *made)
{
    ncclComm_t comm = NULL, parent;
    int excluded = me->ranks - 1;

    switch (round % WAYS) {
    case 0:
        NCCL(ncclCommSplit(me->comm, 0, me->rank, &comm, NULL));
        return comm;
    case 1:
        parent = init_by_id(me, made);
        if (me->rank != excluded)
            NCCL(ncclCommShrink(parent, &excluded, 1, &comm, NULL, NCCL_SHRINK_DEFAULT));
        NCCL(ncclCommDestroy(parent));
        return comm;
    default:
        return init_by_id(me, made);
    }
}

static void many_comms(struct rank *me)
{
    int rounds = number_of("COMMS_ROUNDS"), keeps = number_of("COMMS_KEEPS"), made = 0;
    float *values = suite_floats(COUNT);
    ncclComm_t comm = NULL;

    for (int round = 0; round < rounds; round++) {
        comm = make(me, round, &made);
        if (!comm)
            continue;
        NCCL(ncclAllReduce(values, values, COUNT, ncclFloat32, ncclSum, comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        if (keeps && round % keeps == 0)
            continue;
        NCCL(round % ABORTS ? ncclCommDestroy(comm) : ncclCommAbort(comm));
    }
#ifndef TWIN
    if (me->rank == 0)
        ncclAllReduce(values, values, COUNT, ncclFloat32, ncclSum, comm, me->stream);
#endif
}

SUITE_CASE(.run = many_comms, .ranks = 3, .layout = PROCESSES);
