/* lost_records.c: DC901: records that processes could not pass on; one finding for all of them. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/base/moment.h"
#include "lib/trace/unseen.h"

/* What was lost when it was last reported. */
struct reported_losses {
    uint64_t total;
    int processes;
    uint32_t finding; /* its id, 0 none */
};

/* By enum unseen: how often it was noticed in a process. */
struct seen_causes {
    uint64_t times[UNSEEN_KINDS];
};

struct losses {
    uint64_t control, bulk, hashes;
    uint64_t made; /* records of these processes, lost ones too */
    struct seen_causes noticed;
    int processes;
    uint64_t end_ns; /* of the last of these processes; 0: not all have ended */
    const struct process *worst;
};

/* What --keep dropped was stored and analysed before. */
static uint64_t bulk_lost(const struct process *process)
{
    return process->lost.bulk - process->lost.dropped_bulk;
}

static uint64_t control_lost(const struct process *process)
{
    return process->lost.control - process->lost.dropped_control;
}

static uint64_t all_lost(const struct process *process)
{
    return control_lost(process) + bulk_lost(process) + process->lost.hashes;
}

static struct seen_causes *seen_causes_of(struct analyzer *analyzer, struct process *process)
{
    return state_get(analyzer, &check_lost_records, OWNER_PROCESS, &process->states);
}

static void losses_on_blind(struct analyzer *analyzer, const struct event *event)
{
    struct seen_causes *noticed = seen_causes_of(analyzer, event->process);
    uint64_t kind = event->record->range.id;
    if (noticed && kind < UNSEEN_KINDS)
        noticed->times[kind]++;
}

static struct losses add_losses(struct analyzer *analyzer)
{
    struct losses losses = {0};
    bool all_ended = true;
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        if (!process || !all_lost(process))
            continue;
        const struct seen_causes *noticed = seen_causes_of(analyzer, process);
        for (int kind = 0; noticed && kind < UNSEEN_KINDS; kind++)
            losses.noticed.times[kind] += noticed->times[kind];
        all_ended &= process->ended;
        if (process->end_ns > losses.end_ns)
            losses.end_ns = process->end_ns;
        losses.made += process->now;
        losses.control += control_lost(process);
        losses.bulk += bulk_lost(process);
        losses.hashes += process->lost.hashes;
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
            if (draft->finding.last_ns < process->lost.until_ns)
                draft->finding.last_ns = process->lost.until_ns;
            if (!draft->finding.first_ns || process->lost.since_ns < draft->finding.first_ns)
                draft->finding.first_ns = process->lost.since_ns;
        }
    }
    if (draft->finding.last_ns < draft->finding.first_ns)
        draft->finding.last_ns = draft->finding.first_ns;
}

/* What to do about a cause that was noticed. */
static const struct {
    enum unseen noticed;
    enum advice advice;
} advice_for[] = {
    {UNSEEN_LEFT, ADVICE_LEFT_CALL},
    {UNSEEN_CONFINED, ADVICE_CONFINED},
    {UNSEEN_DAMAGED, ADVICE_DAMAGED_RING},
};

/* One sentence or two for each cause. Each of these stands for a lost record or more: what was lost
 * beyond them found no room. */
static void advise(struct draft *draft, const struct losses *losses)
{
    uint64_t noticed = 0;
    for (size_t i = 0; i < sizeof advice_for / sizeof advice_for[0]; i++) {
        uint64_t times = losses->noticed.times[advice_for[i].noticed];
        if (times)
            draft_advise(draft, advice_for[i].advice);
        noticed += times;
    }
    if (losses->bulk || losses->hashes || losses->control > noticed || !noticed)
        draft_advise(draft, ADVICE_FULL_RINGS);
}

static int64_t known_moment(uint64_t realtime_ns)
{
    return realtime_ns && moment_known(realtime_ns) ? (int64_t)realtime_ns : 0;
}

static bool is_one_date(uint64_t a_ns, uint64_t b_ns)
{
    char a[64], b[64];
    return !strcmp(moment_date(a_ns, a, sizeof a), moment_date(b_ns, b, sizeof b));
}

static bool is_off(const struct check *check, unsigned lost)
{
    return (check->off_without & lost) != 0;
}

static bool is_weak(const struct check *check, unsigned lost)
{
    return (check->weak_without & lost) != 0 && !is_off(check, lost);
}

/* The checks that are off, off in the whole job, weak, and weak without hashes; "" where none
 * is. */
enum { CHECK_LISTS = 4 };

static void list_checks(const struct losses *losses, char *list[CHECK_LISTS])
{
    unsigned lost = losses->control ? LOSS_CALLS : 0;
    if (losses->bulk)
        lost |= LOSS_CUDA;
    const struct {
        bool (*is_listed)(const struct check *check, unsigned lost);
        unsigned lost;
    } lists[CHECK_LISTS] = {{is_off, lost},
                            {is_off, losses->control ? LOSS_CALLS_ANYWHERE : 0},
                            {is_weak, lost},
                            {is_weak, LOSS_HASHES}};
    for (int i = 0; i < CHECK_LISTS; i++) {
        struct text text = {0};
        check_list_add(&text, lists[i].is_listed, lists[i].lost);
        list[i] = text_take(&text);
    }
}

/* 0: not known. */
static double share_lost(const struct losses *losses)
{
    uint64_t lost = losses->control + losses->bulk;
    return losses->made > lost ? (double)lost / (double)losses->made : 0;
}

static void describe_losses(struct draft *draft, const struct losses *losses)
{
    const struct finding *finding = &draft->finding;
    struct rankset all = {0};
    for (int i = 0; i < finding->sides; i++)
        draft->failed |= rankset_unite(&all, &finding->side[i].ranks) != 0;
    struct values values = {
        .set = {&all},
        .value = {(int64_t)(losses->control + losses->bulk), (int64_t)losses->control,
                  (int64_t)losses->bulk, (int64_t)losses->hashes, rank_of_loser(losses->worst),
                  losses->worst->info.pid, losses->processes, known_moment(finding->first_ns),
                  (int64_t)finding->last_ns, known_moment(losses->end_ns)},
        .amount = {share_lost(losses)},
    };
    char *list[CHECK_LISTS];
    list_checks(losses, list);
    for (int i = 0; i < CHECK_LISTS; i++) {
        values.name[i] = list[i];
        draft->failed |= !list[i];
    }
    if (is_one_date(finding->first_ns, finding->last_ns))
        values.value[8] = 0;
    draft_headline(draft, HEADLINE_LOST_RECORDS, ADVICE_NONE, &values);
    for (int i = 0; i < CHECK_LISTS; i++)
        free(list[i]);
    rankset_free(&all);
    advise(draft, losses);
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
    const struct reported *kept = findings_of(analyzer, reported->finding);
    const struct finding *known = kept ? &kept->finding : NULL;
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
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_PROCESS,
    .title = "records were lost",
    .text =
        "Usually the ring through which a process passes its records was full, so some were "
        "dropped: ddpcheck never makes the job wait. Bulk records (CUDA calls) are lost first. Of "
        "the others the newest are kept, and what each rank called last. The end of a call that a "
        "longjmp or an exception left counts as well. So does what comes after a seccomp filter "
        "that kills, or after the program damaged its ring file. The advice says which of these "
        "it was.\n\n"
        "Checks that need complete records, such as hazards, are not made in that process from "
        "the first loss to its end. If records of collectives, waits or communicators were lost, "
        "DC211 is not checked in the whole job either, while that process runs. The finding lists "
        "the checks, and from when to when. Other findings that depend on the lost records are "
        "only possible, and some faults may be missed. What was found in complete records before "
        "stays.",
    .on = {[EVENT_LOST] = losses_on_lost,
           [EVENT_BLIND] = losses_on_blind,
           [EVENT_FINISH] = losses_on_finish},
    .state_bytes = {[OWNER_JOB] = sizeof(struct reported_losses),
                    [OWNER_PROCESS] = sizeof(struct seen_causes)},
};
