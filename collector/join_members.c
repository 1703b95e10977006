/* join_members.c: the members of communicators that a host's processes are. */
#include <stdlib.h>

#include "collector/join_internal.h"

static struct join_comm *comm_of_members(struct join *join, uint64_t id)
{
    struct join_comm *comm;
    TABLE_FIND(join->comms, &id, comm);
    if (comm || !(comm = calloc(1, sizeof *comm)))
        return comm;
    comm->id = id;
    comm->nranks = -1;
    TABLE_ADD(join->comms, id, comm);
    if (TABLE_ADDED(comm))
        return comm;
    free(comm);
    return NULL;
}

static void release_comm(struct join *join, struct join_comm *comm)
{
    if (comm && comm->members <= 0) {
        HASH_DEL(join->comms, comm);
        free(comm);
    }
}

struct join_member *join_member_get(struct join *join, int process, uint64_t comm, int rank)
{
    struct join_member key = {.key = {comm, rank}}, *member;
    TABLE_FIND(join->members, &key.key, member);
    if (member || !(member = calloc(1, sizeof *member)))
        return member;
    member->key = key.key;
    member->process = process;
    member->numbers.nranks = -1; /* not known before the next digest */
    member->comm = comm_of_members(join, comm);
    if (member->comm)
        TABLE_ADD(join->members, key, member);
    if (!member->comm || !TABLE_ADDED(member)) {
        release_comm(join, member->comm);
        free(member);
        return NULL;
    }
    member->comm->members++;
    struct join_process *joined = join->process[process];
    member->process_next = joined->members;
    if (joined->members)
        joined->members->process_prev = member;
    joined->members = member;
    return member;
}

void join_member_free(struct join *join, struct join_member *member)
{
    struct join_process *process = join->process[member->process];
    *(member->process_prev ? &member->process_prev->process_next : &process->members) =
        member->process_next;
    if (member->process_next)
        member->process_next->process_prev = member->process_prev;
    HASH_DEL(join->members, member);
    member->comm->members--;
    release_comm(join, member->comm);
    free(member);
}

bool join_spans_hosts(const struct join *join, uint64_t comm)
{
    const struct join_comm *known;
    TABLE_FIND(join->comms, &comm, known);
    return !known || known->nranks < 0 || known->members < known->nranks;
}

/* Its last digest was sent; a hub that is away for a while gets it again. On a communicator of this
 * host alone there is none. */
static bool member_is_over(const struct join *join, const struct join_member *member)
{
    return member->numbers.is_gone &&
           (!member->comm->is_sent_all || !join->lost_ns || !join_has_hub(join));
}

/* No answer to come needs it: the hub has all of its operations, or has heard of none and will not.
 * With some of them only, a rank would seem to have left before the others. */
bool join_member_is_settled(const struct join *join, struct join_member *member)
{
    const struct join_process *process = join->process[member->process];
    member->is_over = member->is_over || member_is_over(join, member);
    return member->is_over && (process->had >= member->position ||
                               (!member->is_answered && process->first >= member->position));
}

void join_members_free(struct join *join)
{
    while (join->members)
        join_member_free(join, join->members);
}
