/* comm.c: creates and finds communicators and their members. */
#include "analyzer/model/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/gone.h"
#include "analyzer/model/watched.h"
#include "analyzer/model/own_members.h"
#include "analyzer/model/process.h"
#include "lib/base/invariant.h"
#include "lib/trace/names.h"

struct comm *comm_find(struct analyzer *analyzer, uint64_t id)
{
    struct comm *comm = analyzer->found_comm;
    if (comm && comm->id == id)
        return comm;
    TABLE_FIND(analyzer->comms, &id, comm);
    if (comm)
        analyzer->found_comm = comm;
    return comm;
}

struct comm *comm_get(struct analyzer *analyzer, uint64_t id)
{
    struct comm *comm = comm_find(analyzer, id);
    if (comm)
        return comm;
    comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->id = id;
    comm->analyzer = analyzer;
    comm->nranks = -1;
    comm->setup = WAIT_INIT;
    comm->order = analyzer->comm_count;
    comm->is_revived = forgotten_has(analyzer, id);
    TABLE_ADD(analyzer->comms, id, comm);
    if (!TABLE_ADDED(comm)) {
        free(comm);
        return NULL;
    }
    invariant(!analyzer->last_comm || analyzer->last_comm->order < comm->order,
              "communicators are listed in the order of their creation");
    analyzer->comm_count++;
    comm->prev = analyzer->last_comm;
    if (analyzer->last_comm)
        analyzer->last_comm->next = comm;
    else
        analyzer->first_comm = comm;
    analyzer->last_comm = comm;
    return comm;
}

void comm_remove(struct analyzer *analyzer, struct comm *comm)
{
    *(comm->prev ? &comm->prev->next : &analyzer->first_comm) = comm->next;
    *(comm->next ? &comm->next->prev : &analyzer->last_comm) = comm->prev;
    invariant(analyzer->first_comm != comm && analyzer->last_comm != comm,
              "a communicator that is removed is in no list");
    comm->next = comm->prev = NULL;
    HASH_DEL(analyzer->comms, comm);
    if (analyzer->found_comm == comm)
        analyzer->found_comm = NULL;
    for (uint32_t i = 0; i < comm->members; i++)
        own_member_remove(comm->member[i]);
}

void comm_free(struct comm *comm)
{
    free(comm->member);
    rankset_free(&comm->job_ranks);
    free(comm);
}

struct member *member_find(struct analyzer *analyzer, uint64_t comm, int rank)
{
    const struct comm *known = comm_find(analyzer, comm);
    return known ? comm_member(known, rank) : NULL;
}

/* How many members have a lower rank. Where all of these are known it is the rank itself. */
static uint32_t comm_place(const struct comm *comm, int rank)
{
    uint32_t low = 0, high = comm->members;
    if (rank >= 0 && (uint32_t)rank < high && comm->member[rank]->rank == rank)
        return (uint32_t)rank;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (comm->member[middle]->rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct member *comm_member(const struct comm *comm, int rank)
{
    uint32_t place = comm_place(comm, rank);
    return place < comm->members && comm->member[place]->rank == rank ? comm->member[place] : NULL;
}

/* Puts the member at its place among the ranks. */
static int comm_add_member(struct comm *comm, struct member *member)
{
    struct member **grown =
        array_room(comm->member, sizeof(*grown), comm->members, &comm->capacity, 8);
    if (!grown)
        return -1;
    comm->member = grown;
    uint32_t place = comm_place(comm, member->rank);
    memmove(&comm->member[place + 1], &comm->member[place],
            (comm->members++ - place) * sizeof(*comm->member));
    comm->member[place] = member;
    invariant((place < 2 || comm->member[place - 2]->rank < comm->member[place - 1]->rank) &&
                  (place + 1 == comm->members || member->rank < comm->member[place + 1]->rank),
              "the members of a communicator are in the order of their ranks");
    return 0;
}

struct member *member_get(struct comm *comm, int rank, struct process *process)
{
    struct member *member = comm_member(comm, rank);
    if (member)
        return member;
    if (rank < 0 || rank >= MEMBERS_MAX) {
        errno = EINVAL;
        return NULL;
    }
    member = calloc(1, sizeof *member);
    if (!member)
        return NULL;
    member->comm = comm;
    member->comm_id = comm->id;
    member->rank = member->top_rank = rank;
    member->device = RECORD_NO_DEVICE;
    member->destroyed = member->leaving = comm->is_revived;
    member->arrivals = comm->is_revived;
    member->arrival.process = process;
    if (comm_add_member(comm, member)) {
        free(member);
        errno = ENOMEM;
        return NULL;
    }
    forgotten_recall(comm->analyzer, comm);
    if (own_member_add(process, member))
        comm->analyzer->failed = true;
    if (process->ended)
        comm_note_end(comm);
    return member;
}

struct process *comm_guess_process(struct analyzer *analyzer, const struct comm *comm, int rank)
{
    struct process *process = process_of_rank(analyzer, rank, comm->nranks);
    if (!process || process->info.rank >= 0)
        return process;
    /* Of a process whose threads are ranks, this one may not have come. */
    bool holds_others = own_member(process, comm->id, RECORD_NO_RANK) != NULL;
    return holds_others || process_has_communicator(process) ? NULL : process;
}

bool comm_is_of_group(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->process->own.first_order < comm->order)
            return true;
    return false;
}

bool comm_lost(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->process->lost.control)
            return true;
    return false;
}

bool comm_stands_apart(const struct comm *comm, uint32_t what, struct standing_apart *apart)
{
    *apart = (struct standing_apart){.least = UINT64_MAX};
    if (comm->has_ended)
        return false;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (!(member->process->info.lacks & what))
            return false;
        apart->least = member->next < apart->least ? member->next : apart->least;
        apart->most = member->next > apart->most ? member->next : apart->most;
    }
    return comm->members > 1 && apart->least < apart->most;
}

bool comm_has_untraced(const struct comm *comm)
{
    return comm->nranks > 0 && comm->members < (uint32_t)comm->nranks;
}

bool comm_knows_job_ranks(const struct comm *comm)
{
    return comm->nranks > 0 && rankset_count(&comm->job_ranks) == comm->nranks;
}

int comm_list_untraced(const struct comm *comm, struct rankset *ranks)
{
    uint32_t next = 0;
    int job_rank = -1;
    for (int rank = 0; rank < comm->nranks; rank++) {
        job_rank = comm_knows_job_ranks(comm) ? rankset_next(&comm->job_ranks, job_rank + 1) : rank;
        while (next < comm->members && comm->member[next]->rank < rank)
            next++;
        bool seen = next < comm->members && comm->member[next]->rank == rank;
        if (!seen && rankset_add(ranks, job_rank))
            return -1;
    }
    return 0;
}
