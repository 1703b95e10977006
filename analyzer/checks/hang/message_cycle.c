/* message_cycle.c: DC203: the check for sends and receives that wait for each other, which
 * wait_cycle.c finds; counts the messages that a rank exchanges in a row. */
#include "analyzer/checks/hang/hang.h"

#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"
#include "lib/trace/lacks.h"

enum { RUNS_KEPT = 64 };

/* The newest of a process, whose operations are in the order of their calls; the check's state. */
struct message_runs {
    struct message_run {
        uint64_t comm, first; /* number of the first message */
        uint64_t stack;       /* that all were called from: another loop begins a run of its own */
        uint32_t count;       /* 0: unused */
        int32_t peer;         /* -1: collectives */
        bool receives;
    } run[RUNS_KEPT];
    uint32_t newest;
};

static struct message_run *run_before(struct message_runs *runs, uint32_t back)
{
    return &runs->run[(runs->newest + RUNS_KEPT - back) % RUNS_KEPT];
}

static void message_runs_on_operation(struct analyzer *analyzer, const struct event *event)
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
                              .receives = kind_receives(operation->record.api)};
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

const struct check check_message_cycle = {
    .code = DC203,
    .name = "message-cycle",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_P2P | LACKS_UNFINISHED,
    .explains = CODES(CODES_HANGS),
    .title = "sends and receives wait for each other in a cycle",
    .text = "The ranks form a wait cycle: each waits in a send (or receive) whose matching call "
            "comes only after a send or receive that waits in turn.\n\n"
            "It shows as a hang. It is certain: NCCL's sends wait for their receive (user guide, "
            "\"Point-to-point communication\": sends and receives block unless they are in one "
            "group). There is no buffering to rely on, however small the message.\n\n"
            "A message that a rank leaves out looks like a wrong order: the later ones take its "
            "place. If one of the ranks exchanged fewer or more messages in a row than the time "
            "before, the finding says so; the first time this is not known.",
    .causes = CAUSES(
        {"Every rank of a ring sends first and then receives, or both ends of a pair send first.",
         "All steps of the cycle are sends: put the send and the receive into one ncclGroup "
         "(batch_isend_irecv)."},
        {"A pipeline schedule whose neighbours disagree about the order of forward sends and "
         "backward receives.",
         "One step is a send, the next a receive, of different micro-batches."},
        {"A micro-batch that only one stage of a pipeline skips.",
         "One rank turned from receiving to sending a message early: count the rounds of both "
         "loops."}),
    .source = "NCCL 2.29 user guide, \"Point-to-point communication\" and \"Group Calls\"",
    .example = "ncclSend(x, n, ncclFloat, (rank + 1) % ranks, comm, stream);     /* all ranks send "
               "first */\nncclRecv(y, n, ncclFloat, (rank + ranks - 1) % ranks, comm, stream);\n",
    .fix_c = "ncclGroupStart();\nncclSend(x, n, ncclFloat, (rank + 1) % ranks, comm, "
             "stream);\nncclRecv(y, n, ncclFloat, (rank + ranks - 1) % ranks, comm, "
             "stream);\nncclGroupEnd();\n",
    .on = {[EVENT_OPERATION] = message_runs_on_operation},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct message_runs)},
    .fix_torch = "for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right), "
                 "dist.P2POp(dist.irecv, y, left)]):\n    work.wait()\n",
};
