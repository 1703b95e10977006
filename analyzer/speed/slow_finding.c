/* slow_finding.c: builds the findings about what slows a job down. */
#include "analyzer/speed/slow_finding.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/gaps.h"
#include "analyzer/states.h"
#include "lib/trace/names.h"

enum { KERNEL_NAME_BYTES = 128, EVIDENCE_ENOUGH = 128 }; /* iterations */

void slowdown_add_time(struct text *text, double seconds)
{
    if (seconds < 0.9995)
        text_add(text, "%.3g ms", 1e3 * seconds);
    else
        text_add(text, seconds < 99.95 ? "%.3g s" : "%.0f s", seconds);
}

void slowdown_add_factor(struct text *text, double factor)
{
    double unit = 1;
    while (factor / unit >= 100)
        unit *= 10;
    if (factor < 1.995)
        text_add(text, "%.2f times", factor);
    else if (factor < 9.95)
        text_add(text, "%.1f times", factor);
    else
        text_add(text, "%.0f times", unit * rint(factor / unit));
}

void slowdown_add_loss(struct text *text, const struct slowdown *slowdown)
{
    double lost = slowdown->knows_cost ? slowdown->cost : slowdown->lost;
    slowdown_add_time(text, lost);
    text_add(text, " of each iteration of ");
    slowdown_add_time(text, slowdown->length);
    text_add(text, " (%.0f%%)", 100 * lost / slowdown->length);
    if (slowdown->since)
        text_add(text, " since iteration %" PRIu64, slowdown->since);
    if (slowdown->until)
        text_add(text, " until iteration %" PRIu64, slowdown->until);
    if (slowdown->often > 0 && !slowdown->since && !slowdown->until)
        text_add(text, ", all of it in %.0f%% of the iterations", 100 * slowdown->often);
}

void slowdown_add_starved(struct text *text, const struct slowdown *slowdown)
{
    text_add(text, "threads there waited for a processor, ");
    slowdown_add_time(text, slowdown->starved);
    text_add(text, " of each iteration longer than on the peers");
    if (slowdown->is_throttled)
        text_add(text, "; the CPU limit of their cgroup was used up");
}

static const char *common_host(const struct slowdown *slowdown)
{
    const char *host = slowdown->rank[0]->key.process->info.host;
    for (uint32_t i = 1; i < slowdown->ranks; i++)
        if (strcmp(host, slowdown->rank[i]->key.process->info.host) != 0)
            return "";
    return host;
}

void slowdown_add_ranks(struct text *text, const struct slowdown *slowdown)
{
    struct rankset ranks = {0};
    char words[128];
    if (slowdown->is_all) {
        text_add(text, "all ranks");
        return;
    }
    for (uint32_t i = 0; i < slowdown->ranks; i++)
        rankset_add(&ranks, member_shown_rank(slowdown->rank[i]->member));
    rankset_text(&ranks, words, sizeof words);
    rankset_free(&ranks);
    text_add(text, "%s %s", slowdown->ranks == 1 ? "rank" : "ranks", words);
    if (*common_host(slowdown))
        text_add(text, " (host %s)", common_host(slowdown));
}

void slowdown_add_kernels(struct text *text, const struct analyzer *analyzer,
                          const struct slowdown *slowdown)
{
    const char *before = " (";
    for (int i = 0; i < SLOW_KERNELS; i++) {
        const char *name = slowdown_kernel(analyzer, slowdown, i);
        char plain[KERNEL_NAME_BYTES];
        if (!name)
            continue;
        text_add(text, "%s%s", before, text_kernel_name(name, plain, sizeof plain));
        if (slowdown->kernel_ratio[i] > 1) {
            text_add(text, " ");
            slowdown_add_factor(text, slowdown->kernel_ratio[i]);
        }
        before = ", ";
    }
    text_add(text, "%s", before[0] == ',' ? ")" : "");
}

void slowdown_add_gap(struct text *text, const struct slowdown *slowdown)
{
    const char *from = api_shown_name(slowdown->gap->from.api),
               *to = api_shown_name(slowdown->gap->to.api);
    if (strcmp(from, to) != 0)
        text_add(text, "between %s() and %s()", from, to);
    else
        text_add(text, "between two calls of %s()", to);
}

static struct site site_of_call(const struct site *like, const struct host_call *call)
{
    struct site site = *like;
    site.stack = call->stack;
    site.stack_is_address = call->stack_is_address;
    return site;
}

/* The last line before the time passes, and the first one after it. */
static void add_gap_sites(struct draft *draft, struct finding_side *side, const struct site *like,
                          const struct host_gap *gap)
{
    struct site from = site_of_call(like, &gap->from), to = site_of_call(like, &gap->to);
    char name[64];
    snprintf(name, sizeof name, "%s()", api_shown_name(gap->to.api));
    if (gap->from.stack)
        draft_side_at(draft, side, &from);
    draft_side_now(draft, side, &(struct act){.did = DID_BUSY_BEFORE, .name = name}, &to);
}

/* The end of what was judged. */
static uint64_t judged_until(const struct speed *speed)
{
    uint64_t latest_ns = 0;
    for (uint32_t i = 0; i < speed->count; i++)
        if (latest_ns < speed->rank[i]->end_ns)
            latest_ns = speed->rank[i]->end_ns;
    return latest_ns;
}

static void add_slow_side(struct draft *draft, const struct slowdown *slowdown, enum did did)
{
    const struct process *process = slowdown->ranks ? slowdown->rank[0]->key.process : NULL;
    if (!process)
        return;
    struct site site = slowdown->rank[0]->site;
    site.time_ns = 0;                 /* when it began is not known */
    if (slowdown->kind == SLOW_SINCE) /* no line of the program is the reason */
        site.stack = 0;
    struct finding_side *side = draft_side(draft, &(struct act){.did = did}, &site);
    if (side && slowdown->gap)
        add_gap_sites(draft, side, &site, slowdown->gap);
    for (uint32_t i = 0; i < slowdown->ranks; i++)
        draft_rank(draft, side, slowdown->rank[i]->member);
}

static void note_seen(const struct analyzer *analyzer, struct slow_reported *reported,
                      uint32_t place, const struct slowdown *slowdown)
{
    reported->is[place].judged = analyzer->speed->judged;
    reported->is[place].first = slowdown->first;
    reported->is[place].last = slowdown->last;
    reported->is[place].since = slowdown->since > slowdown->first ? slowdown->since
                                                                  : slowdown->first;
}

void slowdown_report(struct analyzer *analyzer, const struct check *check,
                     const struct slowdown *slowdown, enum did did, struct text *what,
                     const char *todo)
{
    struct slow_reported *reported = state_get(analyzer, check, OWNER_JOB, &analyzer->states);
    enum certainty certainty = slowdown->kind_is_guess ? POSSIBLE : CERTAIN;
    struct draft draft = draft_new(check, certainty, slowdown->comm);
    if (slowdown->is_coarse)
        draft.finding.severity = SEVERITY_NOTE;
    uint64_t comm = slowdown->comm ? slowdown->comm->id : 0;
    uint32_t rank = slowdown->ranks ? slowdown->rank[0]->index : UINT32_MAX;
    add_slow_side(&draft, slowdown, did);
    draft.finding.first_ns = draft.finding.last_ns = judged_until(analyzer->speed);
    draft_say(&draft, what, todo);
    for (uint32_t i = 0; reported && i < reported->count; i++)
        if (reported->is[i].comm == comm && reported->is[i].rank == rank) {
            note_seen(analyzer, reported, i, slowdown);
            findings_replace(analyzer, reported->is[i].finding, &draft);
            return;
        }
    if (!reported || reported->count == SLOW_REPORTED_MAX) {
        draft_drop(&draft);
        return;
    }
    uint32_t id = 0;
    findings_report(analyzer, &draft, &id);
    if (!id)
        return;
    reported->is[reported->count].comm = comm;
    reported->is[reported->count].rank = rank;
    reported->is[reported->count].finding = id;
    note_seen(analyzer, reported, reported->count++, slowdown);
}

/* Why a rank is slow. */
static const struct check *const of_ranks[] = {&check_slow_host, &check_slow_device,
                                               &check_more_work};
enum { OF_RANKS = sizeof of_ranks / sizeof *of_ranks };

/* Whether another check says now why the same rank is slow in most of these iterations. */
static bool is_explained_by(struct analyzer *analyzer, const struct check *check,
                            const struct slow_reported *reported, uint32_t place)
{
    uint64_t middle = (reported->is[place].first + reported->is[place].last) / 2;
    const struct slow_reported *other = state_get(analyzer, check, OWNER_JOB, &analyzer->states);
    for (uint32_t i = 0; other && i < other->count; i++)
        if (other->is[i].comm == reported->is[place].comm &&
            other->is[i].rank == reported->is[place].rank &&
            other->is[i].judged == analyzer->speed->judged && other->is[i].since <= middle)
            return true;
    return false;
}

static bool has_another_reason(struct analyzer *analyzer, const struct check *check,
                               const struct slow_reported *reported, uint32_t place)
{
    bool is_of_rank = false, is_explained = false;
    for (int i = 0; i < OF_RANKS; i++) {
        is_of_rank |= of_ranks[i] == check;
        is_explained |= of_ranks[i] != check &&
                        is_explained_by(analyzer, of_ranks[i], reported, place);
    }
    return is_of_rank && is_explained;
}

void slowdown_withdraw(struct analyzer *analyzer, const struct check *check,
                       const struct slowdown *judged)
{
    struct slow_reported *reported = state_get(analyzer, check, OWNER_JOB, &analyzer->states);
    uint32_t kept = 0;
    for (uint32_t i = 0; reported && i < reported->count; i++) {
        uint64_t evidence = reported->is[i].last + 1 - reported->is[i].first;
        bool is_seen = reported->is[i].judged == analyzer->speed->judged;
        bool other = !is_seen && has_another_reason(analyzer, check, reported, i);
        if (!other &&
            (is_seen || evidence >= EVIDENCE_ENOUGH || reported->is[i].first < judged->first)) {
            reported->is[kept++] = reported->is[i];
            continue;
        }
        findings_resolve(analyzer, reported->is[i].finding,
                         other ? "more iterations show another reason"
                               : "more iterations do not show it");
    }
    if (reported)
        reported->count = kept;
}
