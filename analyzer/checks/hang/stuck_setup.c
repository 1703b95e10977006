/* stuck_setup.c: DC209: the check for ranks that never finish creating or destroying a
 * communicator; hang_report.c finds those who wait. Here are:
 *
 * - A communicator that is destroyed while a CUDA graph holds its operations.
 * - A rank that ended before its first call of NCCL, when its launcher then terminated the others,
 *   which waited for it in a set-up. That rank has left no record, or none but its end. Its
 *   launcher is faster than any wait that could be called a hang, so what is left is that the
 *   others were terminated while they waited.
 * - Ranks that wait in the set-ups of different communicators. A rank that has not come to a
 *   communicator of a part of the job is known by its number there only: which process it is, no
 *   record says. If ranks wait in several set-ups at once, they are likely to be the ones that the
 *   other set-ups lack: process groups created in another order, or PyTorch's sends and receives,
 *   for which each pair of ranks sets up a communicator of its own. */
#include "analyzer/checks/hang/hang.h"

#include <signal.h>

#include "analyzer/findings.h"
#include "analyzer/hang/ends.h"
#include "analyzer/hang/where.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/graphs.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

/* "ncclCommDestroy ... waits": until no graph holds operations of the communicator any more. */
static void check_graphs(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    if (record->api != API_ncclCommDestroy || record->flags & RECORD_FLAG_GONE)
        return;
    const struct member *member = member_find(analyzer, record->comm.comm, record->comm.rank);
    if (!member || !graphs_hold(member))
        return;
    const struct act act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(record->api)};
    struct one_call one = {
        .check = &check_stuck_setup,
        .certainty = HASH_COUNT(event->process->threads) == 1 ? CERTAIN : POSSIBLE,
        .comm = member->comm,
        .member = member,
        .process = event->process,
        .record = record,
        .act = &act,
        .site = event->site,
    };
    one_call_headline(analyzer, &one, HEADLINE_DESTROYED_BESIDE_GRAPH, ADVICE_DESTROY_GRAPH_FIRST,
                      NULL);
}

/* The thread that is in the member's ncclCommInitRank; NULL: none. */
static const struct thread *setup_thread(const struct member *member)
{
    for (const struct thread *thread = member->process->threads; thread; thread = thread->hh.next)
        if (thread->in_call && api_class_of(thread->enter.api) == CLASS_COMM &&
            thread->enter.comm.comm == member->comm->id)
            return thread;
    return NULL;
}

static bool was_terminated_waiting(const struct member *member)
{
    const struct process *process = member->process;
    bool by_signal = process->ended && process->end.end.how == END_SIGNAL &&
                     (process->end.end.value == SIGTERM || process->end.end.value == SIGKILL);
    return by_signal && member->arrived && !member->exists && setup_thread(member);
}

static bool all_were_terminated(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (!was_terminated_waiting(comm->member[i]))
            return false;
    return comm->members > 0 && comm->nranks > 0 && comm->members < (uint32_t)comm->nranks;
}

/* The first of the missing ranks whose own end is known, and was not the launcher's doing; NULL:
 * there is none. */
static const struct process *find_failed(struct analyzer *analyzer, const struct comm *comm)
{
    uint32_t next = 0;
    for (int rank = 0; rank < comm->nranks; rank++) {
        if (next < comm->members && comm->member[next]->rank == rank) {
            next++;
            continue;
        }
        const struct process *process = comm_guess_process(analyzer, comm, rank);
        if (process && process->ended && process->end_class == END_CLASS_CAUSE)
            return process;
    }
    return NULL;
}

/* `failed`: how the missing rank ended; NULL: it has left no record. */
static void add_unjoined(struct draft *draft, const struct comm *comm, const struct process *failed)
{
    const struct act not_seen = {.did = DID_NOT_SEEN};
    const struct act act = failed ? end_act(failed) : (struct act){.did = DID_NOT_COME};
    struct finding_side *absent = draft_side(draft, &act, NULL);
    if (failed) {
        absent->process = failed->index;
        draft->failed |= rankset_add(&absent->ranks, process_shown_rank(failed)) != 0;
        draft_cover(draft, failed);
    } else {
        draft_side_now(draft, absent, &not_seen, NULL);
        draft->failed |= comm_list_untraced(comm, &absent->ranks) != 0;
    }
}

/* `known`: the finding that it makes better; 0: none. */
static void ended_report(struct analyzer *analyzer, const struct comm *comm,
                         const struct process *failed, uint32_t known)
{
    const struct act call = {.did = DID_CALLED, .call = call_of_api(API_ncclCommInitRank)};
    struct draft draft = draft_new(&check_stuck_setup, failed ? CERTAIN : POSSIBLE, comm);
    struct where where;
    const struct member *first = comm->member[0];
    struct finding_side *side = draft_side(&draft, &call, &setup_thread(first)->enter_site);
    where_find(NULL, first->process, first, &where);
    draft_side_now(&draft, side, &where.act, &where.site);
    for (uint32_t i = 0; i < comm->members; i++)
        draft_rank(&draft, side, comm->member[i]);
    draft.finding.first_ns = first->arrival.time_ns;
    draft.finding.last_ns = first->process->end_ns;
    add_unjoined(&draft, comm, failed);
    draft_headline(&draft, failed ? HEADLINE_ENDED_BEFORE_SETUP : HEADLINE_NEVER_JOINED,
                   ADVICE_ENDED_EARLY, NULL);
    if (known)
        findings_replace(analyzer, known, &draft);
    else
        findings_report(analyzer, &draft, NULL);
}

/* The finding that the communicator's set-up waits, which did not know yet why. */
static uint32_t find_possible(const struct analyzer *analyzer, const struct comm *comm)
{
    uint32_t known = findings_find(analyzer, DC209, comm->id, 0);
    const struct finding *finding = known ? &findings_of(analyzer, known)->finding : NULL;
    return finding && finding->state == FINDING_OPEN && finding->certainty == POSSIBLE ? known : 0;
}

static void setup_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        if (!all_were_terminated(comm))
            continue;
        const struct process *failed = find_failed(analyzer, comm);
        uint32_t known = failed ? find_possible(analyzer, comm) : 0;
        if (known || (!hang_has_open_error(analyzer) && !comm_is_of_group(comm)))
            ended_report(analyzer, comm, failed, known);
    }
}

/* Ranks that mixed up one communicator are missing in another. */
static bool follows_from_setup(const struct analyzer *analyzer)
{
    const struct reported *reported;
    for (uint32_t i = 0; (reported = hang_next_open(analyzer, &i));)
        if (reported->check->code == DC109)
            return true;
    return false;
}

/* A finding has this set-up among its sides: what is left of the wait when ranks have ended. */
static bool is_crossed_already(const struct analyzer *analyzer, const struct wait_node *wait)
{
    const struct reported *reported;
    for (uint32_t i = 0; (reported = hang_next_open(analyzer, &i));) {
        bool is_crossed = reported->check == &check_stuck_setup && reported->finding.sides > 1 &&
                          reported->finding.side[0].act.did == DID_INIT_CROSSED;
        for (uint32_t k = 0; is_crossed && k < wait->comm->members; k++)
            if (rankset_has(&reported->processes, wait->comm->member[k]->process->index))
                return true;
    }
    return false;
}

/* `title`: where the name of its communicator is kept for the headline. */
static void add_crossed_side(struct draft *draft, const struct wait_graph *graph,
                             const struct wait_node *wait, struct values *values, char *title)
{
    const struct act crossed = {.did = DID_INIT_CROSSED, .call = call_of_api(API_ncclCommInitRank)};
    int sides = draft->finding.sides;
    draft_cover_comm(draft, wait->comm);
    hang_add_waiting(draft, graph, wait);
    if (draft->finding.sides == sides)
        return; /* no room */
    draft_side_act(draft, &draft->finding.side[sides], &crossed);
    values->said[sides] = comm_title(wait->comm, title);
}

bool crossed_setup_report(struct analyzer *analyzer, const struct wait_graph *graph,
                          const struct wait_node *wait, enum certainty certainty)
{
    const struct wait_node *first = wait;
    uint32_t count = 0;
    if (!setup_lacks_unknown(wait))
        return false;
    if (follows_from_setup(analyzer) || is_crossed_already(analyzer, wait))
        return true;
    for (const struct wait_node *next = graph->waits; next; next = next->next) {
        if (!setup_lacks_unknown(next))
            continue;
        if (findings_find(analyzer, DC209, next->comm->id, next->number))
            return true;
        if (next->comm->order < first->comm->order)
            first = next;
        count++;
    }
    if (count < 2)
        return false;
    struct draft draft = hang_draft(&check_stuck_setup, certainty, graph, first);
    struct values values = {.comm = NULL};
    char title[FINDING_SIDES_MAX + 1][COMM_TITLE_BYTES];
    for (const struct wait_node *next = graph->waits; next; next = next->next)
        if (setup_lacks_unknown(next))
            add_crossed_side(&draft, graph, next, &values, title[draft.finding.sides]);
    draft_headline(&draft, HEADLINE_CROSSED_SETUP, ADVICE_CROSSED_SETUP, &values);
    findings_report(analyzer, &draft, NULL);
    return true;
}

const struct check check_stuck_setup = {
    .code = DC209,
    .name = "stuck-setup",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_SETUP,
    .explains = CODES(DC201, DC205, DC206),
    .title = "stuck while a communicator is created or destroyed",
    .text = "Ranks wait in ncclCommInitRank (or ncclCommFinalize, ncclCommDestroy) for ranks that "
            "have not called it.\n\n"
            "It shows as a hang at the start or the end. It is certain if a missing rank has "
            "terminated or is stuck elsewhere, and possible after a long wait (--hang-after): a "
            "rank without a trace (DC902) may only not have been recorded. A rank of this host "
            "that runs and has made no NCCL call yet is named with where it is, if its Python "
            "frames can be read. A communicator of only some of the job's ranks has its own rank "
            "numbers, and no record says which process a missing one is. Where one process waits "
            "and no launcher says that there are others, its other threads may be the missing "
            "ranks: the report shows where one of them is. If the ranks missing in one "
            "communicator wait in the creation of another, one finding shows all of these.\n\n"
            "A rank that ends before its first call of NCCL leaves no record. If its launcher then "
            "terminates the others, which wait for it in the set-up, that is reported as possible: "
            "the job may have been terminated from outside while that rank was still on its "
            "way.\n\n"
            "A communicator that is destroyed while a CUDA graph holds its operations is reported "
            "as well: NCCL waits until the graph is destroyed, which another thread may do.",
    .causes = CAUSES(
        {"A rank that failed before it joined the others.",
         "Its own output: the last traceback.",
         {.failed = true}},
        {"Fewer processes than WORLD_SIZE says.",
         "The finding names the ranks that never called; look for their processes and logs.",
         {.did = SIGN_DID(DID_NO_TRACE, DID_NOT_SEEN)}},
        {"torch.distributed.new_group called by its members only, or in a different order on some "
         "ranks.",
         "The ranks already share a communicator, and those that have not arrived wait elsewhere: "
         "call new_group on all ranks, in the same order.",
         {.did = SIGN_DID(DID_INIT_CROSSED)}},
        {"The wrong network interface: NCCL picked one that other hosts can't reach (a VPN or "
         "bridge; docker0 "
         "only if there is no other).",
         "NCCL_DEBUG=INFO prints 'NET/Socket : Using ...'; set NCCL_SOCKET_IFNAME."},
        {"A firewall between the hosts: NCCL uses ports that it chooses at random.",
         "'nc -zv' from one host to a listening port of another."},
        {"/dev/shm too small or not shared between the containers of one host.",
         "df /dev/shm; NCCL_DEBUG=WARN names the file."},
        {"Different NCCL versions on the hosts.",
         "The first line of NCCL_DEBUG=VERSION on each rank."}),
    .source = "NCCL 2.29 user guide, \"Creating a Communicator\" and \"Troubleshooting\" "
              "(networking, shared memory)",
    .example = "if (rank != 3)\n    ncclCommInitRank(&comm, 4, id, rank);\n",
    .fix_c = "ncclCommInitRank(&comm, 4, id, rank);        /* on all four */\n",
    .fix_torch =
        "# torchrun --nnodes=1 --nproc_per_node=4 train.py: as many processes as WORLD_SIZE says\n"
        "dist.init_process_group(\"nccl\", timeout=timedelta(minutes=2))    # fail early instead "
        "of after 10 minutes\n",
    .on = {[EVENT_NCCL] = check_graphs, [EVENT_FINISH] = setup_on_finish},
};
