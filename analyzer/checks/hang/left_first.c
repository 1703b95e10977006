/* left_first.c: reports a rank that exited with status 0 before the others, which its launcher then
 * terminated while they computed.
 *
 * mpirun does that if a rank exits without MPI_Finalize. Nobody waits yet, so no wait shows it. A
 * job that somebody terminates from outside looks similar, so all of this has to be so: the rank
 * kept its communicator, every other rank of it ended by SIGTERM or left like it, and the first of
 * them was terminated within seconds. */
#include "analyzer/checks/hang/left_first.h"

#include <signal.h>

#include "analyzer/checks/hang/exited_rank.h"
#include "analyzer/findings.h"
#include "analyzer/hang/ends.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"

#define LAUNCHER_NS UINT64_C(5000000000) /* mpirun took 1.1 s on a busy machine */

enum { RANKS_BYTES = 128 };

static const char stay_together[] =
    "Find out why they left first: give every rank the same number of calls, and let each "
    "destroy its communicators and call MPI_Finalize where it is done. mpirun terminates all "
    "others if one rank exits without MPI_Finalize. The lines are those of their last calls of "
    "NCCL or CUDA.";

static bool was_terminated(const struct process *process)
{
    return process->ended && process->end_class == END_CLASS_CONSEQUENCE &&
           process->end.end.how == END_SIGNAL && process->end.end.value == SIGTERM;
}

static bool left_without_destroy(const struct member *member)
{
    const struct process *process = member->process;
    return process->ended && process->end_class == END_CLASS_CLEAN && !member->leaving &&
           !member->aborted;
}

/* How the communicator's ranks ended: who left first, and who was terminated first. */
struct departure {
    const struct member *left, *terminated;
};

static bool find_departure(const struct comm *comm, struct departure *departure)
{
    *departure = (struct departure){0};
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        const struct member **end = NULL;
        if (left_without_destroy(member))
            end = &departure->left;
        else if (was_terminated(member->process))
            end = &departure->terminated;
        else
            return false;
        if (!*end || member->process->end_ns < (*end)->process->end_ns)
            *end = member;
    }
    if (!departure->left || !departure->terminated || (int)comm->members != comm->nranks)
        return false;
    uint64_t left_ns = departure->left->process->end_ns;
    uint64_t terminated_ns = departure->terminated->process->end_ns;
    return left_ns <= terminated_ns && terminated_ns - left_ns <= LAUNCHER_NS;
}

/* Who was terminated, and then who left, each with the last call of the first one. */
static void add_sides(struct draft *draft, const struct comm *comm,
                      const struct departure *departure)
{
    for (int left = 0; left < 2; left++) {
        const struct member *first = left ? departure->left : departure->terminated;
        const struct act act = end_act(first->process);
        const struct site site = end_last_call(first->process);
        struct finding_side *side = draft_side(draft, &act, &site);
        for (uint32_t i = 0; i < comm->members && !draft->failed; i++)
            if (was_terminated(comm->member[i]->process) != left)
                draft_rank(draft, side, comm->member[i]);
    }
}

/* All who left had issued as many operations. */
static bool left_alike(const struct comm *comm, const struct departure *departure)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (!was_terminated(comm->member[i]->process) &&
            comm->member[i]->next != departure->left->next)
            return false;
    return true;
}

static void report_departure(struct analyzer *analyzer, const struct comm *comm,
                             const struct departure *departure)
{
    char left[RANKS_BYTES], others[RANKS_BYTES];
    struct draft draft = draft_new(&check_early_exit, POSSIBLE, comm);
    draft.finding.first_ns = departure->left->process->end_ns;
    draft.finding.last_ns = departure->terminated->process->end_ns;
    add_sides(&draft, comm, departure);
    if (draft.failed) {
        analyzer->failed = true;
        draft_drop(&draft);
        return;
    }
    const struct rankset *terminated = &draft.finding.side[0].ranks,
                         *ranks = &draft.finding.side[1].ranks;
    unsigned long long issued = departure->left->next;
    bool is_one = rankset_count(terminated) == 1;
    struct text what = {0};
    text_add(&what, "%s %s left", rankset_count(ranks) == 1 ? "rank" : "ranks",
             rankset_text(ranks, left, sizeof left));
    if (left_alike(comm, departure))
        text_add(&what, " after %llu operation%s", issued, issued == 1 ? "" : "s");
    text_add(&what, ", and %s %s %s terminated by SIGTERM", is_one ? "rank" : "ranks",
             rankset_text(terminated, others, sizeof others), is_one ? "was" : "were");
    draft_say(&draft, &what, stay_together);
    findings_report(analyzer, &draft, NULL);
}

void left_first_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    struct departure departure;
    if (analyzer->ending_ns || hang_has_open_error(analyzer))
        return;
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next)
        if (find_departure(comm, &departure)) {
            report_departure(analyzer, comm, &departure);
            return;
        }
}
