/* other_comm.c: compares what ranks called on different communicators: where one rank passed
 * another one than its peers, its call is too many there and missing here. */
#include "analyzer/match/other_comm.h"

#include "analyzer/model/comm.h"
#include "analyzer/model/progress.h"

enum { MOST_OF_A_STREAM = 4096 };

/* The member of another communicator that is the same rank of the job; NULL if it has none. */
static struct member *other_member(const struct member *member, const struct comm *comm)
{
    const struct process *process = member->process;
    for (struct member *other = process->members; other; other = other->process_next)
        if (other->comm == comm && (!process->several_ranks || other->device == member->device))
            return other;
    return NULL;
}

static bool is_same_call(const struct signature *a, const struct signature *b)
{
    return a->api == b->api && !a->unknown && !b->unknown && !signature_differs(a, b);
}

/* When a rank's calls of two operations that are not done were made. */
struct call_times {
    const struct member *member[2];
    uint64_t number[2], time_ns[2];
};

static int take_time(void *context, const struct pending *pending)
{
    struct call_times *times = context;
    for (int i = 0; i < 2; i++)
        if (pending->member == times->member[i] && pending->number == times->number[i] &&
            !pending->channel)
            times->time_ns[i] = pending->site.time_ns;
    return 0;
}

/* Of one rank, of operations that are not done. */
static bool is_called_before(const struct member *member, uint64_t number,
                             const struct member *next, uint64_t next_number)
{
    struct call_times times = {.member = {member, next}, .number = {number, next_number}};
    progress_visit_first(member->process, MOST_OF_A_STREAM, take_time, &times);
    return times.time_ns[0] && times.time_ns[1] && times.time_ns[0] <= times.time_ns[1];
}

/* The one that the rank has not called. */
static struct slot *next_slot(const struct member *member)
{
    struct slot *slot = window_slot(member->comm, member->next);
    return slot && slot->variants == 1 ? slot : NULL;
}

bool other_comm_intended(const struct comm *comm, uint64_t number, const struct variant *odd,
                         const struct variant *others, struct other_call *call)
{
    const struct member *rank = comm_member(comm, rankset_next(&odd->ranks, 0));
    const struct member *peer = comm_member(comm, rankset_next(&others->ranks, 0));
    for (const struct member *mine = rank && peer ? rank->process->members : NULL; mine;
         mine = mine->process_next) {
        if (mine->comm == comm || other_member(rank, mine->comm) != mine)
            continue;
        struct slot *slot = next_slot(mine);
        const struct member *theirs = other_member(peer, mine->comm);
        if (!slot || !theirs || theirs->next <= mine->next ||
            !is_same_call(&slot->first.signature, &odd->signature) ||
            !is_called_before(theirs, mine->next, peer, number))
            continue;
        *call = (struct other_call){mine->comm, mine->next, odd->signature, slot->first.site};
        return true;
    }
    return false;
}

bool other_comm_used(const struct member *missing, const struct member *waiting,
                     const struct signature *signature, struct other_call *call)
{
    for (const struct member *mine = missing->process->members; mine; mine = mine->process_next) {
        const struct member *theirs = other_member(waiting, mine->comm);
        if (mine->comm == missing->comm || !theirs || other_member(missing, mine->comm) != mine ||
            mine->next <= theirs->next)
            continue;
        struct slot *slot = next_slot(theirs);
        if (!slot || slot->first.site.process != missing->process ||
            !is_same_call(&slot->first.signature, signature))
            continue;
        *call =
            (struct other_call){mine->comm, theirs->next, slot->first.signature, slot->first.site};
        return true;
    }
    return false;
}
