/* slow_finding.c: builds the findings about what slows a job down. */
#include "analyzer/speed/slow_finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/gaps.h"
#include "analyzer/states.h"
#include "lib/trace/names.h"

/* What costs a tenth of the job is worth a warning, also where a busy host may look the same. */
enum { WARNING_PERCENT = 10 };
enum { KERNEL_NAME_BYTES = 128, EVIDENCE_ENOUGH = 128 }; /* iterations */

void slow_reported_free(void *state)
{
    free(((struct slow_reported *)state)->is);
}

static const char *common_host(const struct slowdown *slowdown)
{
    const char *host = slowdown->rank[0]->key.process->info.host;
    for (uint32_t i = 1; i < slowdown->ranks; i++)
        if (strcmp(host, slowdown->rank[i]->key.process->info.host) != 0)
            return "";
    return host;
}

static int64_t shown_iteration(const struct analyzer *analyzer, uint64_t iteration)
{
    return iteration ? (int64_t)speed_number(analyzer->slot.speed, iteration) : 0;
}

static void set_loss(struct values *values, const struct analyzer *analyzer,
                     const struct slowdown *slowdown)
{
    double lost = slowdown_cost(slowdown);
    values->value[SLOW_VALUE_SINCE] = shown_iteration(analyzer, slowdown->since);
    values->value[SLOW_VALUE_UNTIL] = shown_iteration(analyzer, slowdown->until);
    values->amount[SLOW_LOST] = lost;
    values->amount[SLOW_LENGTH] = slowdown->length;
    values->amount[SLOW_SHARE] = lost / slowdown->length;
    if (!slowdown->since && !slowdown->until && slowdown->often > 0)
        values->amount[SLOW_OFTEN] = slowdown->often;
}

static void set_kernels(struct values *values, const struct analyzer *analyzer,
                        const struct slowdown *slowdown, char plain[][KERNEL_NAME_BYTES])
{
    int kernels = 0;
    for (int i = 0; i < SLOW_KERNELS; i++) {
        const char *name = slowdown_kernel(analyzer, slowdown, i);
        if (!name)
            continue;
        values->name[SLOW_KERNEL + kernels] =
            text_kernel_name(name, plain[kernels], KERNEL_NAME_BYTES);
        if (slowdown->kernel_ratio[i] > 1)
            values->amount[SLOW_KERNEL_RATIO + kernels] = slowdown->kernel_ratio[i];
        kernels++;
    }
}

/* NULL as the first of two calls of the same name. */
static void set_gap(struct values *values, const struct host_gap *gap)
{
    const char *from = api_shown_name(gap->from.api), *to = api_shown_name(gap->to.api);
    values->name[SLOW_GAP_FROM] = strcmp(from, to) != 0 ? from : NULL;
    values->name[SLOW_GAP_TO] = to;
}

static void say_slowdown(struct draft *draft, const struct analyzer *analyzer,
                         const struct slowdown *slowdown, enum headline headline,
                         enum advice advice, const struct values *own)
{
    struct values values = own ? *own : (struct values){0};
    char plain[SLOW_KERNELS][KERNEL_NAME_BYTES];
    values.flag[SLOW_IS_ALL] = slowdown->is_all;
    values.flag[SLOW_IS_THROTTLED] = slowdown->starving.is_throttled;
    values.amount[SLOW_STARVED] = slowdown->starving.seconds;
    if (slowdown->ranks && *common_host(slowdown))
        values.name[SLOW_HOST_NAME] = common_host(slowdown);
    set_loss(&values, analyzer, slowdown);
    set_kernels(&values, analyzer, slowdown, plain);
    if (slowdown->gap)
        set_gap(&values, slowdown->gap);
    draft_headline(draft, headline, advice, &values);
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
    reported->is[place].judged = analyzer->slot.speed->judged;
    reported->is[place].first = slowdown->first;
    reported->is[place].last = slowdown->last;
    reported->is[place].since = slowdown->since > slowdown->first ? slowdown->since
                                                                  : slowdown->first;
}

/* Nobody should read it, read that it was withdrawn, and read it again. */
static bool may_return(const struct analyzer *analyzer, const struct slow_place *place,
                       const struct slowdown *slowdown)
{
    uint64_t evidence = slowdown->last + 1 - slowdown->first;
    return analyzer->slot.speed->is_over ||
           (evidence >= EVIDENCE_ENOUGH && evidence >= 2 * place->withdrawn);
}

void slowdown_report(struct analyzer *analyzer, const struct check *check,
                     const struct slowdown *slowdown, enum did did, enum headline headline,
                     enum advice advice, const struct values *values)
{
    struct slow_reported *reported = state_get(analyzer, check, OWNER_JOB, &analyzer->states);
    enum certainty certainty = slowdown->kind_is_guess ? POSSIBLE : CERTAIN;
    struct draft draft = draft_new(check, certainty, slowdown->comm);
    if (slowdown->is_coarse && 100 * slowdown_cost(slowdown) < WARNING_PERCENT * slowdown->length)
        draft.finding.severity = SEVERITY_NOTE;
    uint64_t comm = slowdown->comm ? slowdown->comm->id : 0;
    uint32_t rank = slowdown->ranks ? slowdown->rank[0]->index : UINT32_MAX;
    add_slow_side(&draft, slowdown, did);
    draft.finding.first_ns = draft.finding.last_ns = judged_until(analyzer->slot.speed);
    say_slowdown(&draft, analyzer, slowdown, headline, advice, values);
    uint32_t place = 0;
    while (reported && place < reported->count &&
           (reported->is[place].comm != comm || reported->is[place].rank != rank))
        place++;
    bool is_known = reported && place < reported->count;
    if (is_known && !reported->is[place].withdrawn) {
        note_seen(analyzer, reported, place, slowdown);
        findings_replace(analyzer, reported->is[place].finding, &draft);
        return;
    }
    struct slow_place *grown =
        reported ? array_room(reported->is, sizeof *grown, reported->count, &reported->capacity, 8)
                 : NULL;
    analyzer->failed |= !grown;
    if (!grown || (is_known && !may_return(analyzer, &reported->is[place], slowdown))) {
        draft_drop(&draft);
        return;
    }
    reported->is = grown;
    uint32_t id = 0;
    findings_report(analyzer, &draft, &id);
    if (!id)
        return;
    reported->is[place] = (struct slow_place){.comm = comm, .rank = rank, .finding = id};
    note_seen(analyzer, reported, place, slowdown);
    reported->count += !is_known;
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
            other->is[i].judged == analyzer->slot.speed->judged && other->is[i].since <= middle)
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
    const struct speed *speed = analyzer->slot.speed;
    for (uint32_t i = 0; reported && i < reported->count; i++) {
        struct slow_place *place = &reported->is[i];
        uint64_t evidence = place->last + 1 - place->first;
        bool is_seen = place->judged == speed->judged;
        bool is_long_gone = speed->is_over || speed->judged - place->judged >= evidence;
        bool other = !is_seen && has_another_reason(analyzer, check, reported, i);
        if (place->withdrawn || (!other && (is_seen || evidence >= EVIDENCE_ENOUGH ||
                                            place->first < judged->first || !is_long_gone)))
            continue;
        place->withdrawn = evidence;
        findings_resolve(analyzer, place->finding,
                         other ? "more iterations show another reason"
                               : "more iterations do not show it");
    }
}
