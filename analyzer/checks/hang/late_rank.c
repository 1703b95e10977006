/* late_rank.c: DC210 of dumps: an operation that every member has issued alike, and some
 * have done and others not.
 *
 * Live, the analyzer sees a stream that gets on or does not. A dump is one moment: all that can be
 * said is that these ranks were not through with it then although others were. The latter prove
 * that all had begun, so it is no missing rank: the GPU or the network is late there, or only the
 * watchdog, which notices late what is done (PyTorch calls it COLLECTIVE_STATE_MISMATCH). */
#include "analyzer/checks/hang/hang.h"

#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"

enum { CALL_BYTES = 256 };

/* A mismatch or a missing rank says why. */
static bool is_known(const struct analyzer *analyzer, const struct comm *comm)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct finding *finding = &analyzer->reported[i].finding;
        if (finding->comm == comm->id && finding->state == FINDING_OPEN &&
            code_family(analyzer->reported[i].check->code) <= FAMILY_HANG)
            return true;
    }
    return false;
}

static void unfinished_report(struct analyzer *analyzer, const struct comm *comm, uint64_t number)
{
    struct draft draft = draft_new(&check_late_rank, POSSIBLE, comm);
    struct finding_side *late = NULL, *done = NULL;
    char call[CALL_BYTES] = "its operation";
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (!unfinished_is_known(member) || member->next <= number)
            continue;
        bool is_late = member->done <= number;
        if (is_late && member->next == number + 1 && member->has_last)
            signature_text(&member->last, call, sizeof call);
        struct finding_side **side = is_late ? &late : &done;
        const struct act act = {.did = is_late ? DID_NOT_FINISHED : DID_FINISHED};
        if (!*side && !(*side = draft_side(&draft, &act, NULL)))
            continue;
        (*side)->process = member->process->index;
        draft_rank(&draft, *side, member);
    }
    draft.is_wait = true;
    draft.finding.number = number;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns =
        late ? analyzer->process[late->process]->last_ns : 0;
    draft_headline(&draft, HEADLINE_UNFINISHED_BY_SOME, ADVICE_UNFINISHED_BY_SOME,
                   &(struct values){.name = {call}, .flag = {late == &draft.finding.side[0]}});
    findings_report(analyzer, &draft, NULL);
}

static void unfinished_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        struct unfinished found;
        if (unfinished_find(comm, &found) && found.some_done && !is_known(analyzer, comm))
            unfinished_report(analyzer, comm, found.number);
    }
}

const struct check check_late_rank = {
    .code = DC210,
    .name = "late-rank",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_TIMING | LACKS_UNFINISHED,
    .title = "a rank is late",
    .text = "Some ranks have waited for a long time (--hang-after) in an operation that another "
            "rank has not issued. That rank is not stuck: it goes on issuing other calls, or its "
            "GPU makes progress with other work. The finding names the late rank, its delay, and "
            "its phase. It is reported again whenever the wait has doubled, and marked as resolved "
            "when the rank arrives.\n\n"
            "It shows as lost time, or, after the timeout of the process group, as a job that its "
            "watchdog terminates.",
    .causes = CAUSES(
        {"One rank evaluates, logs or writes a checkpoint while the others go on to the next step.",
         "The late rank's Python lines are in that code.",
         {.absent = SIGN_RANK_0_WORK}},
        {"Inputs of very different length (sequence length, image size).",
         "The late rank changes from step to step, and is busy on its GPU."},
        {"A slow disk or network file system under one rank's loader.",
         "The late rank is in the loader's queue, its workers in read().",
         {.absent = SIGN_LOADER}},
        {"Compilation or autotuning on one rank (torch.compile, cuDNN benchmark, Triton).",
         "The late rank is in the compiler; it happens in the first steps, or after a new shape.",
         {.absent = SIGN_COMPILER}}),
    .source = "PyTorch 2.10 documentation, torch.distributed.init_process_group: timeout",
    .example = "if (rank == 0)\n    evaluate(model);        /* for minutes, on this rank's GPU "
               "alone */\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, "
               "stream);\ncudaStreamSynchronize(stream);\n",
    .fix_c = "evaluate_part(model, rank, ranks);       /* every rank its share "
             "*/\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_torch = "dist.init_process_group(\"nccl\", timeout=timedelta(hours=1))    # if the delay "
                 "is meant;\n"
                 "control = dist.new_group(timeout=timedelta(hours=1))           # every group has "
                 "a timeout of its own\n",
    .on = {[EVENT_FINISH] = unfinished_on_finish},
};
