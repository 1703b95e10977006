/* judge.c: says now and then what slows the job down, for the checks to report. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/exact.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/ranks.h"
#include "analyzer/speed/slowdown.h"
#include "analyzer/speed/standings.h"

enum { JUDGE_EVERY = 32 }; /* iterations of a live job */

/* Lost in an iteration: less than that is what other programs on the host take, about a time slice.
 */
static const double recorded_least_s = 0.005;
/* In so many iterations another program's work is not taken for the job's. */
enum { RECORDED_NEEDED = 2 * ITERATIONS_NEEDED };

void slowdowns_add(struct slowdowns *slowdowns, const struct slowdown *slowdown)
{
    struct slowdown *grown =
        array_room(slowdowns->slowdown, sizeof *grown, slowdowns->count, &slowdowns->capacity, 4);
    const struct speed_rank **rank = malloc((slowdown->ranks + 1) * sizeof *rank);
    if (grown)
        slowdowns->slowdown = grown;
    if (!grown || !rank) {
        slowdowns->failed = true;
        free(rank);
        return;
    }
    if (slowdown->ranks)
        memcpy(rank, slowdown->rank, slowdown->ranks * sizeof *rank);
    grown[slowdowns->count] = *slowdown;
    grown[slowdowns->count++].rank = rank;
}

void slowdowns_add_all(struct slowdowns *slowdowns, const struct speed *speed,
                       struct slowdown *slowdown)
{
    const struct speed_rank **rank = malloc((speed->count + 1) * sizeof *rank);
    if (!rank) {
        slowdowns->failed = true;
        return;
    }
    for (uint32_t i = 0; i < speed->count; i++)
        rank[i] = speed->rank[i];
    slowdown->rank = rank;
    slowdown->ranks = speed->count;
    slowdown->is_all = true;
    slowdowns_add(slowdowns, slowdown);
    free(rank);
}

void slowdowns_free(struct slowdowns *slowdowns)
{
    for (uint32_t i = 0; slowdowns && i < slowdowns->count; i++)
        free(slowdowns->slowdown[i].rank);
    if (slowdowns)
        free(slowdowns->slowdown);
    free(slowdowns);
}

const char *slowdown_kernel(const struct analyzer *analyzer, const struct slowdown *slowdown,
                            int index)
{
    for (int p = 0; slowdown->kernel[index] && p < analyzer->processes; p++) {
        const char *text = analyzer->process[p]
                               ? process_string(analyzer->process[p], slowdown->kernel[index])
                               : NULL;
        if (text && *text)
            return text;
    }
    return NULL;
}

static double mean_length(const struct judged *judged)
{
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t n = judged->first; n < judged->end; n++) {
        struct speed_iteration iteration;
        if (judged_iteration(judged->speed->rank[0], n, &iteration)) {
            sum += iteration.length;
            count++;
        }
    }
    return count ? sum / (double)count : 0;
}

/* The iterations that all ranks have. */
static void begin_judging(struct judged *judged)
{
    const struct speed *speed = judged->speed;
    judged->end = speed_closed(speed);
    judged->named = true;
    for (uint32_t i = 0; i < speed->count; i++) {
        judged->named &= speed->rank[i]->named;
        const struct process *process = speed->rank[i]->key.process;
        judged->recorded |= !process->info.lacks; /* the shim's: it lacks nothing */
        judged->coarse |= !process->info.lacks && !exact_is_complete(process);
        if (judged->first < speed->rank[i]->begun + 1)
            judged->first = speed->rank[i]->begun + 1;
    }
    if (judged->end > ITERATIONS_KEPT && judged->first < judged->end - ITERATIONS_KEPT)
        judged->first = judged->end - ITERATIONS_KEPT;
}

void judged_free(struct judged *judged)
{
    free(judged->excess);
    free(judged->waited);
    free(judged->behind);
    free(judged->among);
    free(judged->idles);
    free(judged->before);
    judged->before = NULL;
    judged->excess = judged->waited = judged->behind = NULL;
    judged->among = NULL;
    judged->idles = NULL;
}

/* What slows ranks or links down explains longer iterations if it costs most of what they are
 * longer by. */
static bool step_is_explained(const struct slowdowns *found, const struct slowdown *step)
{
    for (uint32_t i = 0; i < found->count; i++)
        if (found->slowdown[i].since &&
            2 * (found->slowdown[i].lost - found->slowdown[i].before) >= step->lost)
            return true;
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
    judged->length = mean_length(judged);
    return judge_peers(judged);
}

static bool has_rank(const struct slowdowns *found, const struct slowdown *slowdown)
{
    for (uint32_t i = 0; i < found->count; i++)
        if (found->slowdown[i].kind != SLOW_LINK && found->slowdown[i].kind != SLOW_PAUSE &&
            found->slowdown[i].rank[0] == slowdown->rank[0])
            return true;
    return false;
}

/* What slowed ranks down before iterations became longer, and is hidden since. */
static void add_earlier(const struct slowdowns *earlier, struct slowdowns *found)
{
    for (uint32_t i = 0; i < earlier->count; i++)
        if (!has_rank(found, &earlier->slowdown[i]))
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
    judged->until = 0;
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

static void find_slowdowns(struct judged *judged, struct slowdowns *found)
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
    bool has_step = can_step && !judged->coarse && judge_step(judged, &step, found);
    judged->step = has_step ? step.since : 0;
    if (!judged->coarse) /* what other programs do on the machine would show as well */
        judge_pauses(judged, found);
    judged->step = 0;
    if (has_step && judge_sides(judged, &step, found, earlier))
        found->failed = true;
    if (!found->failed)
        judge_ranks(judged, found);
    if (!found->failed && !judged->coarse) {
        judge_links(judged, found);
        bool is_open = has_step && !step_is_explained(found, &step) &&
                       !judge_own_steps(judged, &step, found);
        if (is_open || (can_step && found->count && judge_work_step(judged, first, &step, found)))
            slowdowns_add_all(found, judged->speed, &step);
        add_earlier(earlier, found);
    }
    found->failed |= earlier->failed;
    slowdowns_free(earlier);
}

/* On a host that other programs use as well, what a GPU does is still the job's own; late hosts,
 * longer transfers and pauses may be theirs. */
static bool may_be_others(const struct judged *judged, const struct slowdown *slowdown)
{
    return judged->recorded && slowdown->kind != SLOW_DEVICE && slowdown->kind != SLOW_WORK;
}

/* Of so many iterations that were judged. */
static bool is_worth_reporting(const struct judged *judged, uint64_t iterations,
                               const struct slowdown *slowdown)
{
    if (!judged->recorded || judged->coarse)
        return true;
    return slowdown->lost >= recorded_least_s &&
           (iterations >= RECORDED_NEEDED || !may_be_others(judged, slowdown));
}

void speed_judge(struct analyzer *analyzer, bool is_end)
{
    struct speed *speed = analyzer->speed;
    if (!speed || !speed->count)
        return;
    speed_find_rounds(analyzer, is_end);
    for (uint32_t i = 0; i < speed->count; i++)
        speed_rank_close(analyzer, speed->rank[i], is_end);
    uint64_t closed = speed_closed(speed);
    if (closed < speed->judged + JUDGE_EVERY && !(is_end && closed > speed->judged))
        return;
    struct judged judged = {.analyzer = analyzer, .speed = speed};
    struct slowdowns *found = calloc(1, sizeof *found);
    speed->judged = closed;
    if (!found) {
        analyzer->failed = true;
        return;
    }
    begin_judging(&judged);
    judged.length = mean_length(&judged);
    uint64_t iterations = judged.end - judged.first;
    if (judged.length > 0 && judged.end >= judged.first + ITERATIONS_NEEDED)
        find_slowdowns(&judged, found);
    for (uint32_t i = 0; i < found->count; i++)
        found->slowdown[i].is_reported =
            is_worth_reporting(&judged, iterations, &found->slowdown[i]);
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
}
