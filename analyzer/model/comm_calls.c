/* comm_calls.c: what calls and notices say of communicators and their members: who creates and ends
 * them, and in which calls ranks wait for each other. */
#include "analyzer/model/comm.h"

#include <errno.h>

#include "analyzer/model/array.h"
#include "analyzer/model/gone.h"
#include "analyzer/model/watched.h"
#include "analyzer/model/own_members.h"
#include "analyzer/model/process.h"
#include "analyzer/match/window.h"
#include "lib/base/invariant.h"
#include "lib/trace/names.h"

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

static int enter_init(struct event *event)
{
    struct thread *thread = event->thread;
    struct analyzer *analyzer = event->process->analyzer;
    const struct record *record = event->record;
    if (!record->comm.comm)
        return ENGINE_OK;
    struct comm *comm = comm_get(analyzer, record->comm.comm);
    if (!comm)
        return ENGINE_FAILED;
    if (record->api == API_ncclCommGrow)
        comm->setup = WAIT_GROW;
    if (!comm->first_setup_ns)
        comm->first_setup_ns = event->site.time_ns;
    if (comm->nranks < 0 && record->comm.nranks > 0 && record->comm.nranks <= MEMBERS_MAX)
        comm->nranks = record->comm.nranks;
    /* ncclCommInitAll names all its members later, by notice_member. */
    if (record->comm.rank >= 0 && record->api != API_ncclCommInitAll) {
        struct member *member = member_get(comm, record->comm.rank, thread->process);
        if (!member)
            return errno == EINVAL ? ENGINE_SKIPPED : ENGINE_FAILED;
        if (!member->arrivals++)
            member->arrival = event->site;
        member->arrived = true;
        if (member->process == thread->process)
            member_learn(member, record);
        event->member = member;
        if (process_assume_rank(analyzer, thread->process, record->comm.rank, comm->nranks))
            return ENGINE_FAILED;
        return thread_add_setup(thread, (struct setup){comm->setup, comm, member, 0, 0, 0});
    }
    return ENGINE_OK;
}

static void note_abort(struct member *member, const struct event *event)
{
    if (!member->aborted) {
        member->abort.site = event->site;
        member->abort.done = member->done;
        member->abort.aside = member->issuers && !member->more_issuers;
        for (uint32_t i = 0; i < member->issuers; i++)
            member->abort.aside &= member->issuer[i] != event->thread;
    }
    member->aborted = true;
}

/* A call on a parent that makes a communicator of its members. */
static int enter_split(const struct event *event, enum wait_kind kind)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    struct comm *parent = comm_find(event->process->analyzer, record->comm.parent);
    if (!parent)
        return ENGINE_OK; /* made before the trace began */
    /* A split names the rank on the parent only as far as the process holds one member of it. */
    struct member *member = own_member(thread->process, parent->id, record->comm.rank);
    if (!member)
        return ENGINE_OK;
    uint32_t *made = &member->made[setup_rows[kind].counter];
    if (record->comm.ordinal >= *made && record->comm.ordinal < UINT32_MAX)
        *made = record->comm.ordinal + 1;
    struct setup setup = {kind, parent, member, record->comm.ordinal, 0, 0};
    if (record->api == API_ncclCommShrink) {
        if (record->comm.flags & RECORD_COMM_ABORTS) {
            member->abort.by_shrink |= !member->aborted;
            note_abort(member, event);
        }
        setup.excluded_count = (uint32_t)record->comm.bytes;
        setup.excluded = record->comm.pointer;
    }
    return thread_add_setup(thread, setup);
}

/* A call on a communicator that every member makes as often as the others. */
static int enter_counted(const struct event *event, enum wait_kind kind)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    struct comm *comm = comm_find(event->process->analyzer, record->comm.comm);
    struct member *member = comm ? own_member(thread->process, comm->id, record->comm.rank) : NULL;
    if (!member || member->aborted)
        return ENGINE_OK;
    uint32_t *made = &member->made[setup_rows[kind].counter];
    return thread_add_setup(thread, (struct setup){kind, comm, member, (*made)++, 0, 0});
}

static int enter_leaving(const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    struct comm *comm = comm_find(event->process->analyzer, record->comm.comm);
    struct member *member = comm ? own_member(thread->process, comm->id, record->comm.rank) : NULL;
    if (!member)
        return ENGINE_OK;
    comm_note_end(comm);
    if (record->api == API_ncclCommAbort || record->api == API_ncclCommRevoke)
        note_abort(member, event);
    else
        member->leaving = true;
    if (member->aborted)
        return ENGINE_OK;
    return thread_add_setup(thread, (struct setup){WAIT_LEAVE, comm, member, 0, 0, 0});
}

int comm_enter(struct event *event)
{
    enum wait_kind kind = setup_of_api(event->record->api);
    event->thread->uses_nccl = true;
    switch (event->record->api) {
    case API_ncclCommInitRank:
    case API_ncclCommInitRankConfig:
    case API_ncclCommInitRankScalable:
    case API_ncclCommInitAll:
    case API_ncclCommGrow:
        return enter_init(event);
    case API_ncclCommSplit:
    case API_ncclCommShrink:
        return enter_split(event, kind);
    case API_ncclCommFinalize:
    case API_ncclCommDestroy:
    case API_ncclCommAbort:
    case API_ncclCommRevoke:
        return enter_leaving(event);
    default:
        return kind != WAIT_NONE && kind_is_counted(kind) ? enter_counted(event, kind) : ENGINE_OK;
    }
}

void comm_goes_on(const struct event *event)
{
    const struct thread *thread = event->thread;
    const struct record *record = event->record;
    bool nonblocking = record->result == RESULT_IN_PROGRESS ||
                       (!record->result && thread->in_call &&
                        api_class_of(thread->enter.api) == CLASS_COMM &&
                        (thread->enter.comm.flags & RECORD_COMM_NONBLOCKING));
    for (uint32_t i = 0; nonblocking && i < thread->setups; i++) {
        const struct setup *setup = &thread->setup[i];
        struct member *member = setup->member;
        if (!member || (kind_makes_comm(setup->kind) && member->exists))
            continue;
        if (kind_makes_comm(setup->kind)) {
            member->initialising = setup->comm->initialising = true;
            comm_watch(setup->comm);
            continue;
        }
        member->background.goes_on = setup->comm->initialising = true;
        comm_watch(setup->comm);
        member->background.setup = *setup;
        member->background.site = thread->enter_site;
    }
}

int comm_state(struct event *event)
{
    const struct record *record = event->record;
    struct member *member = own_member_first(event->process, record->leave.comm);
    for (; member && record->result != RESULT_IN_PROGRESS; member = member->own_next)
        member->background.goes_on = false;
    return ENGINE_OK;
}

static int leave_destroyed(struct comm *comm, struct member *member)
{
    comm->destroyed += !member->destroyed;
    invariant(comm->destroyed <= comm->members, "only a member destroys a communicator, once");
    member->destroyed = true;
    own_member_put_last(member);
    if (comm->destroyed != comm->members)
        return ENGINE_OK;
    window_shrink(comm);
    return forgotten_expect(comm->analyzer, comm) ? ENGINE_FAILED : ENGINE_OK;
}

int comm_leave(struct event *event)
{
    const struct thread *thread = event->thread;
    const struct record *record = event->record;
    uint64_t id = record->leave.comm;
    int rank = RECORD_NO_RANK;
    if (thread->in_call && thread->enter.api == record->api) {
        rank = thread->enter.comm.rank;
        if (!id)
            id = thread->enter.comm.comm;
    }
    struct comm *comm = comm_find(event->process->analyzer, id);
    struct member *member = comm ? own_member(thread->process, id, rank) : NULL;
    if (!member || record->result != 0)
        return ENGINE_OK;
    switch (record->api) {
    case API_ncclCommDestroy:
    case API_ncclCommAbort:
        return leave_destroyed(comm, member);
    case API_ncclCommSuspend:
        member->suspended |= thread->in_call && thread->enter.comm.flags & RECORD_COMM_SUSPENDS;
        return ENGINE_OK;
    case API_ncclCommResume:
        member->suspended = false;
        return ENGINE_OK;
    case API_ncclCommGetUniqueId:
        if (thread->in_call && comm->grow_ids <= thread->enter.comm.bytes)
            comm->grow_ids = thread->enter.comm.bytes + 1;
        return ENGINE_OK;
    default:
        return ENGINE_OK;
    }
}

/* Each rank of a process that holds several has a device of its own. */
static void member_rank_above(struct member *member)
{
    struct process *process = member->process;
    const struct member *other =
        member->comm->parent ? own_member_first(process, member->comm->parent) : NULL;
    for (; other; other = other->own_next)
        if (!process->several_ranks || other->device == member->device)
            member->top_rank = other->top_rank;
    if (!process->top || process->top->comm->nranks < member->comm->nranks)
        process->top = member;
}

int comm_notice(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    if (!record->comm.comm || record->comm.rank < 0 || record->comm.nranks < 0 ||
        record->comm.nranks > MEMBERS_MAX)
        return ENGINE_SKIPPED;
    struct comm *comm = comm_get(process->analyzer, record->comm.comm);
    if (!comm)
        return ENGINE_FAILED;
    if (!comm->first_setup_ns)
        comm->first_setup_ns = event->site.time_ns;
    if (!record->comm.nranks && process->info.world_size > 0 &&
        process->info.world_size <= MEMBERS_MAX)
        comm->ranks_max = (uint32_t)process->info.world_size;
    struct member *member = member_get(comm, record->comm.rank, process);
    if (!member)
        return errno == EINVAL ? ENGINE_SKIPPED : ENGINE_FAILED;
    if (member->process == process)
        member_learn(member, record);
    member->arrived = member->exists = process->has_communicator = true;
    member->creator = record->thread;
    member->initialising = false;
    member_rank_above(member);
    event->member = member;
    struct member *parent = own_member(process, record->comm.parent, RECORD_NO_RANK);
    if (parent && !process->several_ranks)
        parent->background.goes_on = false;
    return ENGINE_OK;
}

int comm_reached(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    if (!record->reached.comm || record->reached.rank < 0 ||
        record->reached.issued >> NUMBER_MAX_BITS)
        return ENGINE_SKIPPED;
    struct comm *comm = comm_get(process->analyzer, record->reached.comm);
    struct member *member = comm ? member_get(comm, record->reached.rank, process) : NULL;
    if (!member)
        return comm && errno == EINVAL ? ENGINE_SKIPPED : ENGINE_FAILED;
    if (member->process != process)
        return ENGINE_OK;
    if (record->reached.done != UINT64_MAX && member->done < record->reached.done)
        member->done = record->reached.done;
    return window_skip(comm, member, record->reached.issued) ? ENGINE_FAILED : ENGINE_OK;
}
