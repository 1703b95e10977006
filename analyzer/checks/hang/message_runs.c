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
                              .stack = operation->site.stack,
                              .count = 1,
                              .peer = operation->pair ? operation->record.op.root : -1,
                              .receives = operation->record.api == API_ncclRecv};
    if (newest->count && newest->comm == run.comm && newest->peer == run.peer &&
        newest->receives == run.receives && newest->stack == run.stack &&
        newest->first + newest->count == number) {
        newest->count++;
        return;
    }
    runs->newest = (runs->newest + 1) % RUNS_KEPT;
    runs->run[runs->newest] = run;
}

static bool run_is_like(const struct message_run *run, const struct message_run *other)
{
    return run->count && run->comm == other->comm && run->peer == other->peer &&
           run->receives == other->receives && (!other->stack || run->stack == other->stack);
}

/* The length of the run that ends before message `number`, or that holds it if `holds`, and of
 * those before it; false if they are not known, or if the lengths change anyway, as those of a
 * pipeline that fills before it runs. */
static bool find_lengths(struct message_runs *runs, struct message_run kind, uint64_t number,
                         bool holds, struct odd_run *odd)
{
    odd->now = odd->before = 0;
    odd->times_before = 0;
    for (uint32_t back = 0; back < RUNS_KEPT - 1; back++) {
        const struct message_run *run = run_before(runs, back);
        if (!run_is_like(run, &kind) || run->first > number)
            continue;
        uint64_t end = run->first + run->count;
        if (odd->now && odd->times_before && run->count != odd->before)
            return false;
        if (odd->now) {
            odd->before = run->count;
            odd->times_before++;
        } else if (holds && number < end) {
            odd->now = number - run->first + 1;
            kind.stack = run->stack; /* the same loop, the time before */
        } else if (!holds && number == end && back) {
            odd->now = run->count;
            kind.stack = run->stack;
        } else if (run->first < number) {
            return false;
        }
    }
    return odd->times_before > 0;
}

/* The runs of one end of the wait's messages. */
static bool measure_end(const struct analyzer *analyzer, const struct wait_node *wait,
                        bool receives, bool waits, struct odd_run *odd)
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
    return find_lengths(runs, kind, wait->number, waits, odd);
}

/* One run before shows a loop only if the other end exchanged as many messages in a row then. A
 * single message is none: a schedule may exchange shapes first. */
static bool shows_loop(const struct odd_run *end, const struct odd_run *other)
{
    return end->times_before > 1 || (end->before > 1 && other->before == end->before);
}

bool message_runs_find(const struct analyzer *analyzer, const struct wait_node *wait,
                       struct odd_run *odd)
{
    struct odd_run awaited = {0}, waiting = {0};
    if (wait->kind != WAIT_PEER)
        return false;
    bool is_short = measure_end(analyzer, wait, !wait->receives, false, &awaited) &&
                    awaited.now < awaited.before;
    bool is_long = measure_end(analyzer, wait, wait->receives, true, &waiting) &&
                   waiting.now > waiting.before;
    is_short = is_short && shows_loop(&awaited, &waiting);
    is_long = is_long && shows_loop(&waiting, &awaited);
    *odd = is_long ? waiting : awaited;
    return is_short != is_long;
}
