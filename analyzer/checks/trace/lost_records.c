/* lost_records.c: DC901: records that processes could not pass on; one finding for all of them. */
#include <string.h>

#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/base/moment.h"

/* What was lost when it was last reported. */
struct reported_losses {
    uint64_t total;
    int processes;
    uint32_t finding; /* its id, 0 none */
};

struct losses {
    uint64_t control, bulk, hashes;
    int processes;
    uint64_t end_ns; /* of the last of these processes; 0: not all have ended */
    const struct process *worst;
};

/* What takes in whether records were lost: EVENT_LOST, lost_control and lost_bulk. */
static const char off_always[] = "hazards (DC301 to DC303, DC305, DC306, DC310)";
static const char off_without_work[] = "the training loop (DC504 to DC507)";
static const char off_without_calls[] =
    ", messages that nobody takes (DC108), the order of communicators (DC204), open groups (DC207)";
static const char off_for_job[] =
    "; and in the whole job: that it makes no progress outside of NCCL (DC211)";
static const char weak_without_work[] =
    "memory and devices (DC307, DC401, DC403, DC406), and waits through events";
static const char weak_without_calls[] =
    "the other mismatches and hangs (DC101 to DC107, DC109 to DC111, DC201 to DC203, DC205, "
    "DC206, DC208 to DC210), memory and devices (DC307, DC401 to DC407)";

/* What --keep dropped was stored and analysed before. */
static uint64_t bulk_lost(const struct process *process)
{
    return process->lost_bulk - process->dropped_bulk;
}

static uint64_t control_lost(const struct process *process)
{
    return process->lost_control - process->dropped_control;
}

static uint64_t all_lost(const struct process *process)
{
    return control_lost(process) + bulk_lost(process) + process->lost_hashes;
}

static struct losses add_losses(const struct analyzer *analyzer)
{
    struct losses losses = {0};
    bool all_ended = true;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (!process || !all_lost(process))
            continue;
        all_ended &= process->ended;
        if (process->end_ns > losses.end_ns)
            losses.end_ns = process->end_ns;
        losses.control += control_lost(process);
        losses.bulk += bulk_lost(process);
        losses.hashes += process->lost_hashes;
        losses.processes++;
        if (!losses.worst || all_lost(process) > all_lost(losses.worst))
            losses.worst = process;
    }
    losses.end_ns = all_ended ? losses.end_ns : 0;
    return losses;
}

static int rank_of_loser(const struct process *process)
{
    int rank = process_shown_rank(process);
    return rank >= 0 ? rank : process->index;
}

static enum did kind_of_loss(const struct process *process)
{
    enum did lost_bulk = bulk_lost(process) ? DID_LOST_BULK : DID_LOST_HASHES;
    return control_lost(process) ? DID_LOST_CONTROL : lost_bulk;
}

/* A side for each kind: the ranks whose worst loss that is. */
static void add_loss_sides(const struct analyzer *analyzer, struct draft *draft)
{
    static const enum did kinds[] = {DID_LOST_CONTROL, DID_LOST_BULK, DID_LOST_HASHES};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const struct act act = {.did = kinds[k]};
        struct finding_side *side = NULL;
        for (int i = 0; i < analyzer->processes; i++) {
            const struct process *process = analyzer->process[i];
            if (!process || !all_lost(process) || kind_of_loss(process) != kinds[k])
                continue;
            if (!side && !(side = draft_side(draft, &act, NULL)))
                return;
            if (side->process < 0)
                side->process = process->index;
            if (rankset_add(&side->ranks, rank_of_loser(process)))
                draft->failed = true;
            if (draft->finding.last_ns < process->lost_until_ns)
                draft->finding.last_ns = process->lost_until_ns;
            if (!draft->finding.first_ns || process->lost_since_ns < draft->finding.first_ns)
                draft->finding.first_ns = process->lost_since_ns;
        }
    }
    if (draft->finding.last_ns < draft->finding.first_ns)
        draft->finding.last_ns = draft->finding.first_ns;
}

static void add_losers(const struct draft *draft, const struct losses *losses, struct text *what)
{
    struct rankset all = {0};
    char ranks[256];
    if (losses->processes == 1) {
        text_add(what, "of rank %d (process %d)", rank_of_loser(losses->worst),
                 (int)losses->worst->info.pid);
        return;
    }
    for (int i = 0; i < draft->finding.sides; i++)
        for (int rank = -1; (rank = rankset_next(&draft->finding.side[i].ranks, rank + 1)) >= 0;)
            what->failed |= rankset_add(&all, rank) != 0;
    text_add(what, "of ranks %s (most of rank %d)", rankset_text(&all, ranks, sizeof ranks),
             rank_of_loser(losses->worst));
    rankset_free(&all);
}

/* When they were lost. */
static void add_since(const struct draft *draft, struct text *what)
{
    char since[64], until[64];
    if (!moment_known(draft->finding.first_ns))
        return;
    moment_date(draft->finding.first_ns, since, sizeof since);
    moment_date(draft->finding.last_ns, until, sizeof until);
    if (strcmp(since, until) != 0)
        text_add(what, ", from %s to %s", since, until);
    else
        text_add(what, ", from %s on", since);
}

/* When the last of them ended, once that is known of all. */
static void add_end(const struct losses *losses, struct text *what)
{
    char end[64];
    if (!losses->end_ns || !moment_known(losses->end_ns))
        return;
    moment_date(losses->end_ns, end, sizeof end);
    text_add(what, " (%s)", end);
}

static void describe_losses(struct draft *draft, const struct losses *losses)
{
    struct text what = {0};
    uint64_t records = losses->control + losses->bulk;
    if (records) {
        text_add(&what, "%llu records ", (unsigned long long)records);
        add_losers(draft, losses, &what);
        text_add(&what,
                 " were lost (%llu of collectives, waits and communicators, %llu of CUDA calls)",
                 (unsigned long long)losses->control, (unsigned long long)losses->bulk);
        add_since(draft, &what);
        text_add(&what, "; not checked there from then to the end of %s",
                 losses->processes == 1 ? "the process" : "these processes");
        add_end(losses, &what);
        text_add(&what, ": %s", off_always);
        if (losses->bulk)
            text_add(&what, "%s%s", losses->control ? ", " : " and ", off_without_work);
        if (losses->control)
            text_add(&what, "%s%s", off_without_calls, off_for_job);
        text_add(&what, "; only possible, and some may be missed: %s",
                 losses->control ? weak_without_calls : weak_without_work);
    }
    if (losses->hashes) {
        text_add(&what, "%s%llu payload hashes ", records ? "; " : "",
                 (unsigned long long)losses->hashes);
        if (!records)
            add_losers(draft, losses, &what);
        text_add(&what,
                 "%swere not made (the collector was behind, or the driver refused); what needs "
                 "them (DC308, DC309, DC501 to DC503) may be missed",
                 records ? "" : " ");
    }
    draft_say(
        draft, &what,
        "Give the rings more room (a larger /dev/shm), or record fewer calls (run --cuda none "
        "leaves out kernels and copies).");
}

static void report_losses(struct analyzer *analyzer, struct reported_losses *reported)
{
    const struct losses losses = add_losses(analyzer);
    struct draft draft = draft_new(&check_lost_records, CERTAIN, NULL);
    /* Bulk records only weaken the checks of memory and streams. */
    draft.finding.severity = losses.control ? SEVERITY_WARNING : SEVERITY_NOTE;
    add_loss_sides(analyzer, &draft);
    describe_losses(&draft, &losses);
    reported->total = losses.control + losses.bulk + losses.hashes;
    reported->processes = losses.processes;
    if (reported->finding)
        findings_replace(analyzer, reported->finding, &draft);
    else
        findings_report(analyzer, &draft, &reported->finding);
}

/* The counts only grow; they are reported again at each doubling, and where another rank or kind
 * comes. */
static void losses_on_lost(struct analyzer *analyzer, const struct event *event)
{
    struct reported_losses *reported =
        state_get(analyzer, &check_lost_records, OWNER_JOB, &analyzer->states);
    const struct losses losses = add_losses(analyzer);
    (void)event;
    if (!reported || !losses.processes)
        return;
    const struct finding *known =
        reported->finding ? &analyzer->reported[reported->finding - 1].finding : NULL;
    bool is_worse = known && losses.control && known->severity != SEVERITY_WARNING;
    if (!known || is_worse || losses.processes != reported->processes ||
        losses.control + losses.bulk + losses.hashes >= 2 * reported->total)
        report_losses(analyzer, reported);
}

static void losses_on_finish(struct analyzer *analyzer, const struct event *event)
{
    struct reported_losses *reported =
        state_get(analyzer, &check_lost_records, OWNER_JOB, &analyzer->states);
    (void)event;
    if (reported && reported->finding) /* its end is known now */
        report_losses(analyzer, reported);
}

const struct check check_lost_records = {
    .code = DC901,
    .name = "lost-records",
    .family = FAMILY_TRACE,
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_PROCESS,
    .title = "records were lost",
    .text =
        "The ring through which a process passes its records was full, so some were dropped: "
        "ddpcheck never makes the job wait. Bulk records (CUDA calls) are lost first. Of the "
        "others the newest are kept, and what each rank called last.\n\n"
        "DC301 to DC303, DC305, DC306 and DC310 (hazards) need complete records: they are not "
        "checked in that process from the first loss to its end. Neither are DC504 to DC507 "
        "(the training loop) if bulk records were lost, and DC108, DC204 and DC207 if "
        "collectives, waits or communicators were; then DC211 is not checked in the whole job "
        "either, while that process runs. The finding says from when to when. Other findings that "
        "depend on the lost records are only possible, and some faults may be missed. What was "
        "found in complete records before stays.",
    .on = {[EVENT_LOST] = losses_on_lost, [EVENT_FINISH] = losses_on_finish},
    .state_bytes = {[OWNER_JOB] = sizeof(struct reported_losses)},
};
