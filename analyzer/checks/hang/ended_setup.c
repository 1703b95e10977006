/* ended_setup.c: reports a rank that ended before its first call of NCCL, when its launcher then
 * terminated the others, which waited for it in the set-up of a communicator.
 *
 * That rank has left no record, or none but its end. Its launcher is faster than any wait that
 * could be called a hang, so what is left is that the others were terminated while they waited. */
#include "analyzer/checks/hang/ended_setup.h"

#include <signal.h>

#include "analyzer/checks/hang/exited_rank.h"
#include "analyzer/findings.h"
#include "analyzer/hang/ends.h"
#include "analyzer/hang/where.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"

enum { RANKS_BYTES = 128 };

static const char ended_early[] =
    "See why that rank ended before its first call of NCCL, or why it was not started: its own "
    "output and core dump come first; the launcher's message and exit status say how it ended.";

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

/* "rank 1 exited with status 1 before it joined the set-up", or what is known without a record. */
static void describe_unjoined(struct text *what, const struct finding_side *absent,
                              const struct process *failed)
{
    char missing[RANKS_BYTES];
    bool one = rankset_count(&absent->ranks) == 1;
    text_add(what, "%s %s ", one ? "rank" : "ranks",
             rankset_text(&absent->ranks, missing, sizeof missing));
    if (failed) {
        act_add(what, &absent->act);
        text_add(what, " before it joined the others: ");
    } else {
        text_add(what,
                 "ended before %s first call of NCCL, or %s never started: ", one ? "its" : "their",
                 one ? "was" : "were");
    }
}

/* `known`: the finding that it makes better; 0: none. */
static void ended_report(struct analyzer *analyzer, const struct comm *comm,
                         const struct process *failed, uint32_t known)
{
    const struct act call = {.did = DID_CALLED, .call = call_of_api(API_ncclCommInitRank)};
    char waiting[RANKS_BYTES], title[COMM_TITLE_BYTES];
    struct draft draft = draft_new(&check_stuck_setup, failed ? CERTAIN : POSSIBLE, comm);
    struct text what = {0};
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
    bool one = rankset_count(&side->ranks) == 1;
    describe_unjoined(&what, &draft.finding.side[1], failed);
    text_add(&what, "%s %s %s terminated while in the set-up of %s", one ? "rank" : "ranks",
             rankset_text(&side->ranks, waiting, sizeof waiting), one ? "was" : "were",
             comm_title(comm, title));
    draft_say(&draft, &what, ended_early);
    if (known)
        findings_replace(analyzer, known, &draft);
    else
        findings_report(analyzer, &draft, NULL);
}

/* The finding that the communicator's set-up waits, which did not know yet why. */
static uint32_t find_possible(const struct analyzer *analyzer, const struct comm *comm)
{
    uint32_t known = findings_find(analyzer, DC209, comm->id, 0);
    const struct finding *finding = known ? &analyzer->reported[known - 1].finding : NULL;
    return finding && finding->state == FINDING_OPEN && finding->certainty == POSSIBLE ? known : 0;
}

void setup_on_finish(struct analyzer *analyzer, const struct event *event)
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
