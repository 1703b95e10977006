/* comm.c: creates and finds communicators and their members. */
#include "analyzer/model/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/match/divergence.h"
#include "analyzer/loop/lockstep.h"
#include "analyzer/loop/loop_divergence.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/process.h"
#include "analyzer/match/window.h"
#include "lib/trace/names.h"

enum { RESULT_IN_PROGRESS = 7 }; /* ncclInProgress (nccl.h) */

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
    comm->nranks = -1;
    comm->order = analyzer->comm_count;
    TABLE_ADD(analyzer->comms, id, comm);
    if (!TABLE_ADDED(comm)) {
        free(comm);
        return NULL;
    }
    analyzer->comm_count++;
    if (analyzer->last_comm)
        analyzer->last_comm->next = comm;
    else
        analyzer->first_comm = comm;
    analyzer->last_comm = comm;
    return comm;
}

void comm_free(struct comm *comm)
{
    window_free(comm->window);
    divergence_free(comm->divergence);
    payloads_free(comm);
    lockstep_free(comm->lockstep);
    loop_divergence_free(comm->loop_divergence);
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
    return 0;
}

static void member_join(struct member *member, struct process *process)
{
    for (struct member *other = process->members; other; other = other->process_next)
        if (other->comm == member->comm)
            process->several_ranks = true;
    member->process = process;
    member->process_next = process->members;
    process->members = member;
    process->member_count++;
    if (process->ended)
        member->comm->has_ended = true;
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
    member->rank = member->top_rank = rank;
    member->device = RECORD_NO_DEVICE;
    if (comm_add_member(comm, member)) {
        free(member);
        errno = ENOMEM;
        return NULL;
    }
    member_join(member, process);
    return member;
}

static int thread_add_setup(struct thread *thread, struct setup setup)
{
    if (thread->setups == THREAD_SETUPS_MAX)
        return ENGINE_OK;
    struct setup *grown =
        array_room(thread->setup, sizeof *grown, thread->setups, &thread->setup_capacity, 1);
    if (!grown)
        return ENGINE_FAILED;
    thread->setup = grown;
    thread->setup[thread->setups++] = setup;
    return ENGINE_OK;
}

static void member_learn(struct member *member, const struct record *record)
{
    if (record->comm.device >= 0)
        member->device = record->comm.device;
    if (record->comm.gpu)
        member->gpu = record->comm.gpu;
    if (member->comm->nranks < 0 && record->comm.nranks > 0 && record->comm.nranks <= MEMBERS_MAX)
        member->comm->nranks = record->comm.nranks;
    if (record->comm.parent)
        member->comm->parent = record->comm.parent;
}

static int enter_init(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                      struct member **member)
{
    if (!record->comm.comm)
        return ENGINE_OK;
    struct comm *comm = comm_get(analyzer, record->comm.comm);
    if (!comm)
        return ENGINE_FAILED;
    if (!comm->first_setup_ns)
        comm->first_setup_ns = record_realtime(thread->process, record);
    if (comm->nranks < 0 && record->comm.nranks > 0 && record->comm.nranks <= MEMBERS_MAX)
        comm->nranks = record->comm.nranks;
    /* ncclCommInitAll names all its members later, by notice_member. */
    if (record->comm.rank >= 0 && record->api != API_ncclCommInitAll) {
        *member = member_get(comm, record->comm.rank, thread->process);
        if (!*member)
            return errno == EINVAL ? ENGINE_SKIPPED : ENGINE_FAILED;
        if (!(*member)->arrivals++)
            (*member)->arrival = thread_site(thread, record);
        (*member)->arrived = true;
        if ((*member)->process == thread->process)
            member_learn(*member, record);
        if (process_assume_rank(analyzer, thread->process, record->comm.rank, comm->nranks))
            return ENGINE_FAILED;
        return thread_add_setup(thread, (struct setup){SETUP_INIT, comm, *member, 0, 0, 0});
    }
    return ENGINE_OK;
}

static struct member *own_member(const struct process *process, uint64_t comm, int rank)
{
    for (struct member *member = process->members; member; member = member->process_next)
        if (member->comm->id == comm &&
            (rank < 0 || member->rank == rank || !process->several_ranks))
            return member;
    return NULL;
}

static void note_abort(struct member *member, const struct thread *thread,
                       const struct record *record)
{
    if (!member->aborted) {
        member->aborted_at = thread_site(thread, record);
        member->done_at_abort = member->done;
    }
    member->aborted = true;
}

static int enter_split(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record)
{
    struct comm *parent = comm_find(analyzer, record->comm.parent);
    if (!parent)
        return ENGINE_OK; /* made before the trace began */
    /* A split names the rank on the parent only as far as the process holds one member of it. */
    struct member *member = own_member(thread->process, parent->id, record->comm.rank);
    if (!member)
        return ENGINE_OK;
    if (record->comm.ordinal >= member->splits && record->comm.ordinal < UINT32_MAX)
        member->splits = record->comm.ordinal + 1;
    struct setup setup = {SETUP_SPLIT, parent, member, record->comm.ordinal, 0, 0};
    if (record->api == API_ncclCommShrink) {
        if (record->comm.flags & RECORD_COMM_ABORTS) {
            member->was_shrunk |= !member->aborted;
            note_abort(member, thread, record);
        }
        setup.kind = SETUP_SHRINK;
        setup.excluded_count = (uint32_t)record->comm.bytes;
        setup.excluded = record->comm.pointer;
    }
    return thread_add_setup(thread, setup);
}

static int enter_window(struct analyzer *analyzer, struct thread *thread,
                        const struct record *record)
{
    struct comm *comm = comm_find(analyzer, record->comm.comm);
    struct member *member = comm ? own_member(thread->process, comm->id, record->comm.rank) : NULL;
    if (!member || member->aborted)
        return ENGINE_OK;
    return thread_add_setup(thread,
                            (struct setup){SETUP_WINDOW, comm, member, member->windows++, 0, 0});
}

static int enter_leaving(struct analyzer *analyzer, struct thread *thread,
                         const struct record *record)
{
    struct comm *comm = comm_find(analyzer, record->comm.comm);
    struct member *member = comm ? own_member(thread->process, comm->id, record->comm.rank) : NULL;
    if (!member)
        return ENGINE_OK;
    comm->has_ended = true;
    if (record->api == API_ncclCommAbort || record->api == API_ncclCommRevoke)
        note_abort(member, thread, record);
    else
        member->leaving = true;
    if (member->aborted)
        return ENGINE_OK;
    return thread_add_setup(thread, (struct setup){SETUP_LEAVE, comm, member, 0, 0, 0});
}

int comm_enter(struct analyzer *analyzer, struct thread *thread, const struct record *record,
               struct member **member)
{
    thread->uses_nccl = true;
    switch (record->api) {
    case API_ncclCommInitRank:
    case API_ncclCommInitRankConfig:
    case API_ncclCommInitRankScalable:
    case API_ncclCommInitAll:
        return enter_init(analyzer, thread, record, member);
    case API_ncclCommSplit:
    case API_ncclCommShrink:
        return enter_split(analyzer, thread, record);
    case API_ncclCommWindowRegister:
        return enter_window(analyzer, thread, record);
    case API_ncclCommFinalize:
    case API_ncclCommDestroy:
    case API_ncclCommAbort:
    case API_ncclCommRevoke:
        return enter_leaving(analyzer, thread, record);
    default:
        return ENGINE_OK;
    }
}

void comm_goes_on(struct thread *thread, const struct record *record)
{
    bool nonblocking = record->result == RESULT_IN_PROGRESS ||
                       (!record->result && thread->in_call &&
                        api_class_of(thread->enter.api) == CLASS_COMM &&
                        (thread->enter.comm.flags & RECORD_COMM_NONBLOCKING));
    for (uint32_t i = 0; nonblocking && i < thread->setups; i++) {
        const struct setup *setup = &thread->setup[i];
        struct member *member = setup->member;
        if (!member || (setup->kind == SETUP_INIT && member->exists))
            continue;
        if (setup->kind == SETUP_INIT) {
            member->initialising = setup->comm->initialising = true;
            continue;
        }
        member->in_background = setup->comm->initialising = true;
        member->background = *setup;
        member->background_site = thread->enter_site;
    }
}

void comm_state(struct process *process, const struct record *record)
{
    for (struct member *member = process->members; member; member = member->process_next)
        if (member->comm->id == record->leave.comm && record->result != RESULT_IN_PROGRESS)
            member->in_background = false;
}

int comm_leave(struct analyzer *analyzer, struct thread *thread, const struct record *record)
{
    if (record->api != API_ncclCommDestroy && record->api != API_ncclCommAbort)
        return ENGINE_OK;
    uint64_t id = record->leave.comm;
    int rank = RECORD_NO_RANK;
    if (thread->in_call && thread->enter.api == record->api) {
        rank = thread->enter.comm.rank;
        if (!id)
            id = thread->enter.comm.comm;
    }
    struct comm *comm = comm_find(analyzer, id);
    struct member *member = comm ? own_member(thread->process, id, rank) : NULL;
    if (!member || record->result != 0)
        return ENGINE_OK;
    comm->destroyed += !member->destroyed;
    member->destroyed = true;
    if (comm->destroyed == comm->members && comm->nranks >= 0 &&
        comm->members >= (uint32_t)comm->nranks)
        window_shrink(comm);
    return ENGINE_OK;
}

/* Each rank of a process that holds several has a device of its own. */
static void member_rank_above(struct member *member)
{
    struct process *process = member->process;
    for (const struct member *other = process->members; other; other = other->process_next)
        if (member->comm->parent && other->comm->id == member->comm->parent &&
            (!process->several_ranks || other->device == member->device))
            member->top_rank = other->top_rank;
    if (!process->top || process->top->comm->nranks < member->comm->nranks)
        process->top = member;
}

int comm_notice(struct analyzer *analyzer, struct process *process, const struct record *record,
                struct member **member)
{
    if (!record->comm.comm || record->comm.rank < 0 || record->comm.nranks < 0 ||
        record->comm.nranks > MEMBERS_MAX)
        return ENGINE_SKIPPED;
    struct comm *comm = comm_get(analyzer, record->comm.comm);
    if (!comm)
        return ENGINE_FAILED;
    if (!comm->first_setup_ns)
        comm->first_setup_ns = record_realtime(process, record);
    if (!record->comm.nranks && process->info.world_size > 0 &&
        process->info.world_size <= MEMBERS_MAX)
        comm->ranks_max = (uint32_t)process->info.world_size;
    *member = member_get(comm, record->comm.rank, process);
    if (!*member)
        return errno == EINVAL ? ENGINE_SKIPPED : ENGINE_FAILED;
    if ((*member)->process == process)
        member_learn(*member, record);
    (*member)->arrived = (*member)->exists = true;
    (*member)->creator = record->thread;
    (*member)->initialising = false;
    member_rank_above(*member);
    struct member *parent = own_member(process, record->comm.parent, RECORD_NO_RANK);
    if (parent && !process->several_ranks)
        parent->in_background = false;
    return ENGINE_OK;
}

int comm_reached(struct analyzer *analyzer, struct process *process, const struct record *record)
{
    if (!record->reached.comm || record->reached.rank < 0 ||
        record->reached.issued >> NUMBER_MAX_BITS)
        return ENGINE_SKIPPED;
    struct comm *comm = comm_get(analyzer, record->reached.comm);
    struct member *member = comm ? member_get(comm, record->reached.rank, process) : NULL;
    if (!member)
        return comm && errno == EINVAL ? ENGINE_SKIPPED : ENGINE_FAILED;
    if (member->process != process)
        return ENGINE_OK;
    if (record->reached.done != UINT64_MAX && member->done < record->reached.done)
        member->done = record->reached.done;
    return window_skip(comm, member, record->reached.issued) ? ENGINE_FAILED : ENGINE_OK;
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
        for (const struct member *other = comm->member[i]->process->members; other;
             other = other->process_next)
            if (other->comm->order < comm->order)
                return true;
    return false;
}

bool comm_lost(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->process->lost_control)
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
