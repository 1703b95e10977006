/* early_exit.c: DC206: the check for a rank that exits while others still wait for it;
 * hang_report.c finds it. Here is a rank that exited with status 0 before the others, which its
 * launcher then terminated while they computed.
 *
 * mpirun does that if a rank exits without MPI_Finalize. Nobody waits yet, so no wait shows it. A
 * job that somebody terminates from outside looks similar, so all of this has to be so: the rank
 * kept its communicator, every other rank of it ended by SIGTERM or left in the same way, and the
 * first of them was terminated within seconds. */
#include "analyzer/checks/hang/hang.h"

#include "analyzer/check.h"
#include "analyzer/findings.h"
#include "analyzer/hang/ends.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"

#define LAUNCHER_NS UINT64_C(5000000000) /* mpirun took 1.1 s on a busy machine */

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
        else if (end_is_terminated(member->process))
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
            if (end_is_terminated(comm->member[i]->process) != left)
                draft_rank(draft, side, comm->member[i]);
    }
}

/* All who left had issued as many operations. */
static bool left_alike(const struct comm *comm, const struct departure *departure)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (!end_is_terminated(comm->member[i]->process) &&
            comm->member[i]->next != departure->left->next)
            return false;
    return true;
}

static void report_departure(struct analyzer *analyzer, const struct comm *comm,
                             const struct departure *departure)
{
    struct draft draft = draft_new(&check_early_exit, POSSIBLE, comm);
    draft.finding.first_ns = departure->left->process->end_ns;
    draft.finding.last_ns = departure->terminated->process->end_ns;
    add_sides(&draft, comm, departure);
    if (draft.failed) {
        analyzer->failed = true;
        draft_drop(&draft);
        return;
    }
    draft_headline(
        &draft, HEADLINE_LEFT_FIRST, ADVICE_LEAVE_TOGETHER,
        &(struct values){.value = {departure->left->next}, .flag = {left_alike(comm, departure)}});
    findings_report(analyzer, &draft, NULL);
}

static void left_first_on_finish(struct analyzer *analyzer, const struct event *event)
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

const struct check check_early_exit = {
    .code = DC206,
    .name = "early-exit",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_END,
    .explains = CODES(CODES_HANGS),
    .title = "a rank finished early (uneven inputs)",
    .text =
        "Some ranks finished (destroyed the communicator, or exited with status 0); another "
        "continues and issues operations that they will never join.\n\n"
        "It shows as a hang at the end of an epoch. Or the launcher terminates the others while "
        "they compute, as mpirun does when a rank exits without MPI_Finalize: then it is "
        "reported when the job is over, as possible.\n\n"
        "A certain one can be wrong only if the last records of a rank were lost (DC901), a "
        "possible one if somebody terminated the job right after the rank had left.",
    .causes = CAUSES(
        {"Inputs of uneven length: the data set is not divisible by the number of ranks, or "
         "filtered per rank.",
         "print(len(loader)) on every rank."},
        {"An IterableDataset that is not sharded by rank and worker, or shards of different size.",
         "len() does not exist; count the batches. A sampler has no effect on an IterableDataset."},
        {"Join used with collectives that it does not shadow: it covers those of DDP and ZeRO, but "
         "not metrics and barriers of the loop.",
         "The operation that waits is not a gradient bucket."},
        {"Early stopping decided by each rank for itself.",
         "The rank left in the middle of an epoch."}),
    .source = "PyTorch 2.10 documentation, torch.distributed.algorithms.Join",
    .example = "for (int i = 0; i < batches_of(rank); i++)\n    ncclAllReduce(x, x, n, ncclFloat, "
               "ncclSum, comm, stream);\nncclCommDestroy(comm);\n",
    .fix_c =
        "for (int i = 0; i < batches_least; i++)      /* the least of all ranks, agreed on by an "
        "AllReduce(min) */\n    ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_torch = "with Join([model]):        # torch.distributed.algorithms.join\n    for batch in "
                 "loader: ...\n",
    .on = {[EVENT_FINISH] = left_first_on_finish},
};
