/* dc9xx_trace.c: what the trace itself lacks: DC901 (lost records), DC902 (ranks without a trace).
 */
#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"

/* How many had been lost when they were last reported. */
static uint64_t *lost_reported(struct analyzer *analyzer, struct process *process)
{
    return state_get(analyzer, &check_lost_records, OWNER_PROCESS, &process->states);
}

static void report_lost(struct analyzer *analyzer, struct process *process)
{
    uint64_t *reported = lost_reported(analyzer, process);
    if (!reported)
        return;
    struct draft draft = draft_new(&check_lost_records, CERTAIN, NULL);
    struct text what = {0};
    uint64_t control = process->lost_control, bulk = process->lost_bulk,
             hashes = process->lost_hashes;
    /* Bulk records only weaken the checks of memory and streams. */
    draft.finding.severity = control ? SEVERITY_WARNING : SEVERITY_NOTE;
    enum did lost_bulk = bulk ? DID_LOST_BULK : DID_LOST_HASHES;
    const struct act act = {.did = control ? DID_LOST_CONTROL : lost_bulk};
    struct finding_side *side = draft_side(&draft, &act, NULL);
    int rank = process_shown_rank(process);
    if (rankset_add(&side->ranks, rank >= 0 ? rank : process->index))
        draft.failed = true;
    side->process = process->index;
    draft.finding.first_ns = draft.finding.last_ns = process->last_ns;
    text_add(&what, "of rank %d (process %d) ", rank, (int)process->info.pid);
    if (control + bulk) {
        text_add(&what,
                 "%llu records were lost (%llu of collectives, waits and communicators, %llu of "
                 "CUDA calls)",
                 (unsigned long long)(control + bulk), (unsigned long long)control,
                 (unsigned long long)bulk);
        text_add(&what,
                 control
                     ? "; mismatches and hangs that concern it (DC101 to DC111, DC201 to DC210) "
                       "are only possible, and may be missed"
                     : "; its checks of memory and devices (DC301 to DC310, DC401, DC403, DC406) "
                       "are only possible or silent, and waits through events may be missed");
    }
    if (hashes)
        text_add(&what,
                 "%s%llu payload hashes were not made (the collector was behind, or the driver "
                 "refused): what they would have shown (DC308, DC309, DC501 to DC503) is missed",
                 control + bulk ? "; " : "", (unsigned long long)hashes);
    draft_say(&draft, &what, "Give the rings more room (a larger /dev/shm), or trace fewer calls.");
    struct reported *known = NULL;
    for (uint32_t i = 0; i < analyzer->reported_count && !known; i++)
        if (analyzer->reported[i].check == draft.check &&
            analyzer->reported[i].finding.side[0].process == process->index)
            known = &analyzer->reported[i];
    if (known && known->finding.severity == draft.finding.severity) {
        /* The counts only grow; they are reported again at each doubling. */
        if (control + bulk + hashes < 2 * *reported) {
            draft_drop(&draft);
            return;
        }
    }
    *reported = control + bulk + hashes;
    if (known) {
        findings_replace(analyzer, known->finding.id, &draft);
    } else {
        findings_report(analyzer, &draft, NULL);
    }
}

static void trace_on_lost(struct analyzer *analyzer, const struct event *event)
{
    report_lost(analyzer, event->process);
}

/* Of a communicator that was never made the rest of the ranks need not exist. */
static bool was_made(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->exists || comm->member[i]->has_last)
            return true;
    return false;
}

static void trace_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        uint64_t *reported = process ? lost_reported(analyzer, process) : NULL;
        if (reported && *reported &&
            *reported != process->lost_control + process->lost_bulk + process->lost_hashes) {
            *reported = 0;
            report_lost(analyzer, process);
        }
    }
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        if (comm->nranks <= 0 || comm->members >= (uint32_t)comm->nranks || !was_made(comm))
            continue;
        struct draft draft = draft_new(&check_missing_trace, CERTAIN, comm);
        struct text what = {0};
        char name[16], ranks[128];
        struct finding_side *side = draft_side(&draft, &(struct act){.did = DID_NO_TRACE}, NULL);
        uint32_t next = 0;
        for (int rank = 0; rank < comm->nranks; rank++) {
            while (next < comm->members && comm->member[next]->rank < rank)
                next++;
            bool seen = next < comm->members && comm->member[next]->rank == rank;
            if (!seen && rankset_add(&side->ranks, rank))
                draft.failed = true;
        }
        draft.finding.first_ns = draft.finding.last_ns = comm->first_setup_ns;
        text_add(&what,
                 "%s has %d ranks, and this trace has nothing of %s: what they did is not checked",
                 comm_name(comm->id, name), comm->nranks,
                 rankset_text(&side->ranks, ranks, sizeof ranks));
        draft_say(
            &draft, &what,
            "Give the report the databases of all hosts; see that every rank ran under ddpcheck.");
        findings_report(analyzer, &draft, NULL);
    }
}

const struct check check_lost_records = {
    .code = DC901,
    .name = "lost-records",
    .family = FAMILY_TRACE,
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_PROCESS,
    .title = "records were lost",
    .text =
        "The ring through which a process passes its records was full, so the newest were dropped; "
        "ddpcheck never makes the job wait. Bulk records (CUDA calls) are lost first.\n\n"
        "Findings that depend on the lost records are only possible, and some faults may be "
        "missed.",
    .on = {[EVENT_LOST] = trace_on_lost, [EVENT_FINISH] = trace_on_finish},
    .state_bytes = {[OWNER_PROCESS] = sizeof(uint64_t)},
};

const struct check check_missing_trace = {
    .code = DC902,
    .name = "missing-trace",
    .family = FAMILY_TRACE,
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .title = "ranks without a trace",
    .text = "This trace contains nothing about some ranks of a communicator: they ran on another "
            "host, without ddpcheck, or before it began.\n\n"
            "Their calls are not compared, and no rank is reported as missing because of them.",
};
