/* message_runs.c: counts the messages that a rank exchanges in a row. */
#include "analyzer/checks/hang/message_runs.h"

#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"

static struct message_run *run_before(struct message_runs *runs, uint32_t back)
{
    return &runs->run[(runs->newest + RUNS_KEPT - back) % RUNS_KEPT];
}

void message_runs_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct process *process = operation->process;
    struct message_runs *runs =
        operation->pair
            ? state_get(analyzer, &check_message_cycle, OWNER_PROCESS, &process->states)
            : state_find(analyzer, &check_message_cycle, OWNER_PROCESS, process->states);
    if (!runs)
        return;
    uint64_t number = operation->record.op.number;
    struct message_run *newest = &runs->run[runs->newest],
                       run = {.comm = operation->member->comm->id,
                              .first = number,
                              .count = 1,
                              .peer = operation->pair ? operation->record.op.root : -1,
                              .receives = operation->record.api == API_ncclRecv};
    if (newest->count && newest->comm == run.comm && newest->peer == run.peer &&
        newest->receives == run.receives && newest->first + newest->count == number) {
        newest->count++;
        return;
    }
    runs->newest = (runs->newest + 1) % RUNS_KEPT;
    runs->run[runs->newest] = run;
}

static bool run_is_like(const struct message_run *run, const struct message_run *other)
{
    return run->count && run->comm == other->comm && run->peer == other->peer &&
           run->receives == other->receives;
}

/* The lengths of the run that ends before message `number`, or that holds it if `holds`, and of the
 * one before that; false if they are not known, or if the lengths change anyway. */
static bool find_lengths(struct message_runs *runs, const struct message_run *kind, uint64_t number,
                         bool holds, struct odd_run *odd)
{
    uint64_t before[2] = {0};
    int found = 0;
    odd->now = 0;
    for (uint32_t back = 0; back < RUNS_KEPT - 1 && found < 2; back++) {
        const struct message_run *run = run_before(runs, back);
        if (!run_is_like(run, kind) || run->first > number)
            continue;
        uint64_t end = run->first + run->count;
        if (odd->now)
            before[found++] = run->count;
        else if (holds && number < end)
            odd->now = number - run->first + 1;
        else if (!holds && number == end && back)
            odd->now = run->count;
        else if (run->first < number)
            return false;
    }
    odd->before = before[0];
    /* A single message before is no loop: a schedule may exchange shapes first. */
    return found == 2 ? before[0] == before[1] : before[0] > 1;
}

/* One end of the wait's messages. */
static bool is_odd_end(const struct analyzer *analyzer, const struct wait_node *wait, bool receives,
                       bool waits, struct odd_run *odd)
{
    const struct member *member = NULL, *peer = NULL;
    for (uint32_t i = 0; i < wait->comm->members; i++) {
        const struct member *one = wait->comm->member[i];
        if (one->rank == (receives ? wait->receiver : wait->sender))
            member = one;
        if (one->rank == (receives ? wait->sender : wait->receiver))
            peer = one;
    }
    struct message_runs *runs = member && peer ? state_find(analyzer, &check_message_cycle,
                                                            OWNER_PROCESS, member->process->states)
                                               : NULL;
    if (!runs)
        return false;
    const struct message_run kind = {
        .comm = member->comm->id, .peer = peer->rank, .receives = receives};
    odd->rank = member_shown_rank(member);
    odd->peer = member_shown_rank(peer);
    odd->receives = receives;
    return find_lengths(runs, &kind, wait->number, waits, odd) &&
           (waits ? odd->now > odd->before : odd->now < odd->before);
}

bool message_runs_find(const struct analyzer *analyzer, const struct wait_node *wait,
                       struct odd_run *odd)
{
    struct odd_run other;
    if (wait->kind != WAIT_PEER)
        return false;
    bool awaited_is_odd = is_odd_end(analyzer, wait, !wait->receives, false, odd);
    if (!is_odd_end(analyzer, wait, wait->receives, true, &other))
        return awaited_is_odd;
    *odd = other;
    return !awaited_is_odd;
}
