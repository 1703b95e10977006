/* judge.c: says now and then what slows the job down, for the checks to report. */
#include <math.h>
#include "analyzer/speed/whatif.h"
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/exact.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/gaps.h"
#include "analyzer/speed/ranks.h"
#include "analyzer/speed/slowdown.h"
#include "analyzer/speed/standings.h"

/* Iterations of a live job: the first findings come soon, and long jobs are not judged often. */
enum { JUDGE_EVERY = 32, JUDGE_EVERY_FIRST = 10, JUDGE_FIRST = 160 };

/* Lost in an iteration: less than that is what other programs on the host take, about a time slice.
 */
static const double recorded_least_s = 0.005;
static const double pause_least_s = 0.02; /* the same for a pause */
static const double recorded_since_s = 5; /* since ranks became slow */
/* Iterations that are enough not to take another program's work for the job's. */
enum { RECORDED_NEEDED = 30 };
/* What a loss has to exceed: multiples of the noise, by which recorded iterations differ. */
enum {
    NOISE_PERCENT = 25,
    QUIET_TIMES = 2,
    NOISY_TIMES = 4,
    KERNELS_PERCENT = 125,
    KERNELS_CLEAR_PERCENT = 175
};
enum { COUNTED_PERCENT = 125 }; /* of its peers' work */
enum { UNEVEN_PERCENT = 8 };    /* of an iteration: jitter of kernels costs 6 % among 16 ranks */
enum { PAUSES_NEEDED = 5, VARYING_PAUSES_NEEDED = 10 }; /* there */
enum { COARSE_SURE_PERCENT = 90, COARSE_STEP_PERCENT = 10 };

/* The iterations that all ranks have. Returns the first that is kept, also if it does not count. */
static uint64_t begin_judging(struct judged *judged)
{
    const struct speed *speed = judged->speed;
    judged->end = speed_closed(speed);
    judged->named = true;
    bool has_others = false, show_kernels = true;
    for (uint32_t i = 0; i < speed->count; i++) {
        has_others |= speed->rank[i]->has_others;
        show_kernels &= speed->rank[i]->shows_kernels;
        judged->named &= speed->rank[i]->named;
        judged->placed |= speed_is_placed(speed->rank[i]);
        const struct process *process = speed->rank[i]->key.process;
        judged->recorded |= process_is_recorded(process);
        judged->coarse |= process_is_recorded(process) && !exact_is_complete(process);
        if (judged->first < speed->rank[i]->begun + 1)
            judged->first = speed->rank[i]->begun + 1;
    }
    judged->shows_kernels = show_kernels;
    judged->exposes = show_kernels || !has_others;
    bool is_late = judged->end > ITERATIONS_KEPT && judged->first < judged->end - ITERATIONS_KEPT;
    if (is_late)
        judged->first = judged->end - ITERATIONS_KEPT;
    uint64_t kept = judged->first;
    if (!is_late && judged->end > judged->first)
        judged->first += speed_warm_up(judged);
    return kept;
}

/* what judge_peers filled in */
static void judged_free(struct judged *judged)
{
    free(judged->excess);
    free(judged->waited);
    free(judged->behind);
    free(judged->among);
    free(judged->pipeline);
    free(judged->pipeline_of);
    free(judged->idles);
    free(judged->before);
    judged->before = NULL;
    judged->excess = judged->waited = judged->behind = NULL;
    judged->among = NULL;
    judged->pipeline = NULL;
    judged->pipeline_of = NULL;
    judged->idles = NULL;
}

/* Where the model explains the iterations: without it they would be that much shorter. */
static bool gains_enough(const struct slowdown *slowdown)
{
    bool is_asked_only = slowdown->kind == SLOW_UNEVEN || slowdown->kind == SLOW_STAGES;
    if (!slowdown->gain.is_known)
        return !is_asked_only;
    int least = slowdown->kind == SLOW_UNEVEN ? UNEVEN_PERCENT : SHARE_PERCENT;
    return 100 * slowdown->gain.seconds >= least * slowdown->length;
}

/* What slows ranks or links down explains longer iterations if it costs most of what they are
 * longer by. A rank hides behind one that was slow before. */
static bool step_is_explained(const struct slowdowns *found, const struct slowdown *step)
{
    double earlier = 0;
    for (uint32_t i = 0; i < found->count; i++)
        if (!found->slowdown[i].since && found->slowdown[i].kind < SLOW_LINK)
            earlier = fmax(earlier, found->slowdown[i].lost);
    for (uint32_t i = 0; i < found->count; i++) {
        const struct slowdown *slowdown = &found->slowdown[i];
        double before = slowdown->kind < SLOW_LINK ? fmax(slowdown->before, earlier)
                                                   : slowdown->before;
        if (slowdown->gain.is_known && slowdown->gain.seconds < slowdown->lost)
            before = slowdown->lost - slowdown->gain.seconds;
        if (slowdown->since && 2 * (slowdown->lost - before) >= step->lost)
            return true;
    }
    return false;
}

/* Of each rank, on average; NULL when memory is short, which costs only that. */
static double *excess_before(const struct judged *judged, uint64_t since)
{
    double *before = calloc(judged->speed->count + 1, sizeof *before);
    for (uint32_t r = 0; before && r < judged->speed->count; r++)
        for (uint64_t n = judged->first; n < since; n++)
            before[r] += judged_excess(judged, r)[n - judged->first] /
                         (double)(since - judged->first);
    return before;
}

/* Judges [first, end) alone from now on. 0 or -1 (ENOMEM). */
static int judge_only(struct judged *judged, uint64_t first, uint64_t end)
{
    judged_free(judged);
    judged->first = first;
    judged->end = end;
    judged->length = speed_mean_length(judged);
    return judge_peers(judged);
}

static bool has_same(const struct slowdowns *found, const struct slowdown *slowdown)
{
    bool is_rank = slowdown->kind < SLOW_LINK;
    for (uint32_t i = 0; i < found->count; i++) {
        const struct slowdown *other = &found->slowdown[i];
        bool is_alike = is_rank ? other->kind != SLOW_LINK && other->kind != SLOW_PAUSE
                                : other->kind == slowdown->kind;
        if (is_alike && other->rank[0] == slowdown->rank[0])
            return true;
    }
    return false;
}

/* What slowed ranks down before iterations became longer, or shorter. */
static void add_earlier(const struct slowdowns *earlier, struct slowdowns *found)
{
    for (uint32_t i = 0; i < earlier->count; i++)
        if (!has_same(found, &earlier->slowdown[i]))
            slowdowns_add(found, &earlier->slowdown[i]);
}

/* Iterations became longer: what holds since then is judged, and what held before. */
static int judge_sides(struct judged *judged, const struct slowdown *step, struct slowdowns *found,
                       struct slowdowns *earlier)
{
    uint64_t first = judged->first, end = judged->end;
    double *before = excess_before(judged, step->since);
    bool has_pauses = found->count > 0;
    judged->until = step->since;
    if (judge_only(judged, first, step->since)) {
        free(before);
        return -1;
    }
    judge_ranks(judged, earlier);
    if (!has_pauses)
        judge_pauses(judged, found);
    has_pauses = found->count > 0;
    judged->until = judged->ends;
    if (judge_only(judged, step->since, end)) {
        free(before);
        return -1;
    }
    judged->before = before;
    judged->begin = first;
    judged->since = step->since;
    judged->rise = step->lost;
    if (!has_pauses)
        judge_pauses(judged, found);
    return 0;
}

/* With coarse times that iterations became longer is no finding; it only divides what is judged. */
static bool is_sure_step(const struct judged *judged, const struct slowdown *step)
{
    return !judged->coarse || (100 * step->confidence >= COARSE_SURE_PERCENT &&
                               100 * step->lost >= COARSE_STEP_PERCENT * step->length);
}

static void find_part(struct judged *judged, struct slowdowns *found)
{
    struct slowdowns *earlier = calloc(1, sizeof *earlier);
    struct slowdown step;
    uint64_t first = judged->first;
    bool can_step = judged->end >= first + 2 * ITERATIONS_NEEDED;
    if (!earlier || judge_peers(judged)) {
        found->failed = true;
        slowdowns_free(earlier);
        return;
    }
    bool has_step = can_step && judge_step(judged, &step, found) && is_sure_step(judged, &step);
    judged->step = has_step ? step.since : 0;
    judge_pauses(judged, found);
    judged->step = 0;
    if (has_step && judge_sides(judged, &step, found, earlier))
        found->failed = true;
    if (!found->failed)
        judge_ranks(judged, found);
    if (!found->failed) {
        judge_links(judged, found);
        drop_explained_by_links(judged, found);
        add_earlier(earlier, found);
        judge_gains(judged, found);
    }
    if (!found->failed && !judged->coarse && !judged->placed) {
        bool is_open = has_step && !step_is_explained(found, &step) &&
                       !judge_own_steps(judged, &step, found);
        bool may_be_work = can_step && (found->count || judged->shows_kernels);
        if (is_open || (may_be_work && judge_work_step(judged, first, &step, found)))
            slowdowns_add_all(found, judged->speed, &step);
    }
    found->failed |= earlier->failed;
    slowdowns_free(earlier);
}

/* Where iterations were longer for a while, that is judged, and then what comes after it. */
static void find_slowdowns(struct judged *judged, struct slowdowns *found)
{
    uint64_t end = judged->end;
    struct slowdowns *earlier = calloc(1, sizeof *earlier);
    if (!earlier) {
        found->failed = true;
        return;
    }
    if (!judged->recorded) /* others use the host for a while, too */
        judged->ends = judge_phase_end(judged, found);
    if (judged->ends) {
        judged->until = judged->end = judged->ends;
        judged->length = speed_mean_length(judged);
        find_part(judged, earlier);
        judged_free(judged);
        judged->first = judged->ends;
        judged->end = end;
        judged->since = judged->begin = judged->until = judged->ends = 0;
        judged->length = speed_mean_length(judged);
    }
    find_part(judged, found);
    add_earlier(earlier, found);
    found->failed |= earlier->failed;
    slowdowns_free(earlier);
}

/* On a host that other programs use as well, what a GPU does is still the job's own; late hosts,
 * longer transfers and pauses may be theirs. */
static bool may_be_others(const struct judged *judged, const struct slowdown *slowdown)
{
    return judged->recorded && slowdown->kind != SLOW_DEVICE && slowdown->kind != SLOW_WORK;
}

/* By how much iterations differ in which nothing changed: the middle half of the median rank's. */
static double noise_of(const struct judged *judged)
{
    double *length = speed_median_lengths(judged), noise = 0;
    size_t count = judged->end - judged->first;
    if (length && count) {
        speed_median(length, count);
        noise = length[3 * count / 4] - length[count / 4];
    }
    free(length);
    return noise;
}

/* A busy host's are at distances that vary, too. */
static uint64_t pauses_needed(const struct judged *judged, const struct slowdown *slowdown)
{
    if (!slowdown->period_varies)
        return PAUSES_NEEDED;
    return judged->coarse ? UINT64_MAX : VARYING_PAUSES_NEEDED;
}

/* Where iterations differ much, other programs may cause whatever is not far beyond that; and
 * changes, pauses and slow transfers are theirs. */
static bool exceeds_noise(const struct judged *judged, double noise,
                          const struct slowdown *slowdown)
{
    bool is_quiet = 100 * noise <= NOISE_PERCENT * judged->length;
    if (slowdown->kind == SLOW_PAUSE) /* another program's are neither so long nor regular */
        return slowdown->times >= pauses_needed(judged, slowdown) &&
               slowdown->each >= pause_least_s && slowdown->each >= QUIET_TIMES * noise;
    if (slowdown->is_steady)
        return true;
    if (judged->coarse && slowdown->kind == SLOW_LINK)
        return false;
    bool is_in_kernels = slowdown->kind < SLOW_LINK && slowdown->ratio > 0; /* in all of them */
    if (is_in_kernels && 100 * slowdown->ratio >= KERNELS_CLEAR_PERCENT)
        return true;
    if (is_in_kernels && 100 * slowdown->ratio >= KERNELS_PERCENT)
        return slowdown->lost >= noise;
    if (is_quiet || slowdown->kind >= SLOW_LINK)
        return is_quiet && slowdown->lost >= QUIET_TIMES * noise;
    return slowdown->lost >= NOISY_TIMES * noise;
}

/* How much work kernels have is counted, not timed: no other program adds to it. */
static bool is_counted(const struct slowdown *slowdown)
{
    return slowdown->kind == SLOW_WORK && 100 * slowdown->work >= COUNTED_PERCENT;
}

/* A busy host takes processors from an emulated GPU, and feeds a real one late, for seconds. */
static bool is_long_enough(const struct slowdown *slowdown)
{
    uint64_t iterations = slowdown->last + 1 - slowdown->since;
    bool is_long = (double)iterations * slowdown->length >= recorded_since_s;
    return iterations >= RECORDED_NEEDED && (is_long || slowdown->kind == SLOW_LINK);
}

/* `iterations` were judged; `noise` is their noise in seconds. */
static bool is_worth_reporting(const struct judged *judged, uint64_t iterations, double noise,
                               const struct slowdown *slowdown)
{
    if (!gains_enough(slowdown))
        return false;
    if (!judged->recorded || is_counted(slowdown))
        return true;
    if (slowdown->starving.is_cause) /* else it is a busy host */
        return slowdown->starving.is_clear;
    bool is_enough = iterations >= RECORDED_NEEDED || !may_be_others(judged, slowdown);
    if (slowdown->since) /* when another program begins, a GPU becomes slower, too */
        is_enough = is_long_enough(slowdown);
    else if (slowdown->kind < SLOW_LINK && (judged->coarse || slowdown->is_steady))
        return true; /* demands of why.c */
    bool is_regular = slowdown->kind == SLOW_PAUSE && !slowdown->period_varies;
    return is_enough && (is_regular || slowdown->lost >= recorded_least_s) &&
           exceeds_noise(judged, noise, slowdown);
}

/* All of the iterations from `first` on is handled. */
static void report_judged(struct analyzer *analyzer, uint64_t first, uint64_t end)
{
    const struct slowdown all = {.first = first, .last = end - 1};
    const struct event over = {.kind = EVENT_JUDGED, .slowdown = &all};
    event_handle(analyzer, &over);
}

void speed_judge(struct analyzer *analyzer, bool is_end)
{
    struct speed *speed = analyzer->slot.speed;
    if (!speed || !speed->count)
        return;
    speed_find_rounds(analyzer, is_end);
    speed_close(analyzer, is_end);
    uint64_t closed = speed_closed(speed);
    uint64_t every = speed->judged < JUDGE_FIRST ? JUDGE_EVERY_FIRST : JUDGE_EVERY;
    speed->is_over = is_end;
    if (closed < speed->judged + every && !(is_end && closed > speed->judged)) {
        if (is_end && speed->judged)
            report_judged(analyzer, 0, speed->judged);
        return;
    }
    struct judged judged = {.analyzer = analyzer, .speed = speed};
    struct slowdowns *found = calloc(1, sizeof *found);
    speed->judged = closed;
    speed_forget_gaps(speed, closed);
    if (!found || speed_level(speed, closed)) {
        free(found);
        analyzer->failed = true;
        return;
    }
    uint64_t kept = begin_judging(&judged);
    judged.length = speed_mean_length(&judged);
    uint64_t iterations = judged.end - judged.first;
    bool is_enough = judged.length > 0 && judged.end >= judged.first + ITERATIONS_NEEDED;
    if (is_enough)
        find_slowdowns(&judged, found);
    slowdowns_sort(found);
    found->length = is_enough ? judged.length : 0;
    double noise = is_enough ? noise_of(&judged) : 0;
    for (uint32_t i = 0; i < found->count; i++) {
        judge_starved(&judged, &found->slowdown[i]);
        found->slowdown[i].is_reported =
            is_worth_reporting(&judged, iterations, noise, &found->slowdown[i]);
    }
    if (judged.excess)
        found->failed |= speed_keep_standings(speed, &judged, found) != 0;
    judged_free(&judged);
    analyzer->failed |= found->failed;
    slowdowns_free(speed->found);
    speed->found = found;
    for (uint32_t i = 0; i < found->count; i++) {
        if (!found->slowdown[i].is_reported)
            continue;
        found->slowdown[i].is_coarse |= may_be_others(&judged, &found->slowdown[i]);
        const struct event event = {.kind = EVENT_SLOWDOWN, .slowdown = &found->slowdown[i]};
        event_handle(analyzer, &event);
    }
    report_judged(analyzer, kept, judged.end);
}
