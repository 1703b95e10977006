/* whatif.c: see whatif.h. */
#include "analyzer/speed/whatif.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/questions.h"

enum {
    SCENES_LEAST = 5,  /* iterations that the model explains, or it changes nothing */
    ALIKE_TIMES = 4,   /* at most, what ranks lose that have one reason */
    HIDES_TIMES = 2,   /* as much as any of them alone gains all of a family together */
    TRIMMED_MOST = 64, /* ranks of a finding; each is asked for */
    SAME_GAIN = 90,    /* % of the gain of all, by one of the ranks */
    OFTEN_PERCENT = 70 /* of the iterations, in which a gain is there */
};

/* A question: the job without this slowdown. */
struct question {
    struct slowdown *slowdown;
    double gain; /* when it was asked last, seconds of an iteration */
    bool is_stale, is_done;
};

static bool concerns_slowdown(const struct slowdown *slowdown, uint64_t iteration)
{
    return iteration >= slowdown->since && iteration >= slowdown->first &&
           iteration <= slowdown->last && (!slowdown->until || iteration < slowdown->until);
}

/* On average over the iterations that it concerns; 0 if it is not there in most of them. */
static double ask_question(struct whatif *whatif, struct slowdown *slowdown)
{
    if (slowdown->kind == SLOW_UNEVEN)
        whatif_find_shares(whatif);
    double sum = 0;
    uint32_t count = 0, often = 0;
    for (uint32_t i = 0; i < whatif->scenes; i++) {
        if (!concerns_slowdown(slowdown, whatif->scene[i].iteration))
            continue;
        double gain = whatif_ask(whatif, &whatif->scene[i], slowdown);
        sum += gain;
        often += 100 * gain > whatif->scene[i].length;
        count++;
    }
    bool is_seldom = slowdown->often > 0; /* and found because of that */
    slowdown->gain.is_known = count >= SCENES_LEAST;
    return count && (is_seldom || 100 * often >= OFTEN_PERCENT * count) ? sum / count : 0;
}

/* From now on the job is without it. */
static void replace_durations(struct whatif *whatif, const struct slowdown *slowdown)
{
    for (uint32_t i = 0; i < whatif->scenes; i++) {
        struct scene *scene = &whatif->scene[i];
        if (!concerns_slowdown(slowdown, scene->iteration))
            continue;
        scene->length -= whatif_ask(whatif, scene, slowdown);
        memcpy(scene->work, scene->try_work, scene->replay->steps * sizeof(double));
        memcpy(scene->delay, scene->try_delay, scene->replay->steps * sizeof(double));
        memcpy(scene->transfer, scene->try_transfer, scene->replay->meetings * sizeof(double));
    }
}

static bool is_pipeline(const struct judged *judged)
{
    for (uint32_t r = 0; r < judged->speed->count; r++)
        if (judged_pipeline(judged, r)->ranks > 1)
            return true;
    return false;
}

/* The stage with most work. */
static void add_stages(struct whatif *whatif, struct slowdowns *found)
{
    uint32_t ranks = whatif->judged->speed->count, most = 0;
    const struct speed_rank **rank = malloc((ranks + 1) * sizeof *rank);
    struct slowdown slowdown = {.kind = SLOW_STAGES, .rank = rank};
    if (!rank) {
        found->failed = true;
        return;
    }
    whatif_stage_work(whatif, &whatif->scene[whatif->scenes / 2]);
    for (uint32_t r = 0; r < ranks; r++)
        if (whatif->stage[r] == r && whatif->value[r] > whatif->value[most])
            most = r;
    double mean = whatif_stage_work(whatif, &whatif->scene[whatif->scenes / 2]);
    slowdown.ratio = mean > 0 ? whatif->value[most] / mean : 0;
    for (uint32_t r = 0; r < ranks; r++)
        if (whatif->stage[r] == most)
            rank[slowdown.ranks++] = whatif->judged->speed->rank[r];
    slowdowns_add(found, &slowdown);
    free(rank);
}

/* What no rule finds, as questions. */
static void add_uneven(struct whatif *whatif, struct slowdowns *found)
{
    struct judged *judged = whatif->judged;
    uint32_t from = found->count;
    if (judged->recorded || !judged->shows_kernels || whatif->scenes < SCENES_LEAST)
        return;
    struct slowdown uneven = {.kind = SLOW_UNEVEN};
    slowdowns_add_all(found, judged->speed, &uneven);
    if (is_pipeline(judged) && whatif->stages_of > 1)
        add_stages(whatif, found);
    for (uint32_t i = from; i < found->count; i++) {
        found->slowdown[i].first = judged->first;
        found->slowdown[i].last = judged->end - 1;
        found->slowdown[i].length = judged->length;
    }
}

static bool can_ask(const struct slowdown *slowdown)
{
    return slowdown->kind < SLOW_LINK || slowdown->kind == SLOW_UNEVEN ||
           slowdown->kind == SLOW_STAGES || (slowdown->kind == SLOW_LINK && slowdown->ratio > 1);
}

/* The one with the largest gain, beside what has been replaced; NULL: none gains anything. */
static struct question *next_question(struct whatif *whatif, struct question *question,
                                      uint32_t count)
{
    for (;;) {
        struct question *best = NULL;
        for (uint32_t i = 0; i < count; i++)
            if (!question[i].is_done && (!best || question[i].gain > best->gain))
                best = &question[i];
        if (!best || !best->is_stale)
            return best;
        best->gain = ask_question(whatif, best->slowdown);
        best->is_stale = false;
    }
}

static bool is_of_family(const struct slowdown *one, const struct slowdown *other)
{
    return one->kind == other->kind && one->since == other->since && one->first == other->first &&
           ALIKE_TIMES * fmin(one->lost, other->lost) >= fmax(one->lost, other->lost);
}

/* Ranks that work together hide each other: the job is as slow without one of them. All that lose
 * alike for the same reason are asked for at once. Returns how many there are; the ranks belong to
 * *family. */
static uint32_t make_family(const struct slowdowns *found, uint32_t first, struct slowdown *family)
{
    uint32_t count = 0, room = 0;
    for (uint32_t i = 0; i < found->count; i++)
        room += found->slowdown[i].ranks;
    *family = found->slowdown[first];
    family->ranks = 0;
    family->rank = malloc((room + 1) * sizeof *family->rank);
    for (uint32_t i = 0; family->rank && i < found->count; i++) {
        const struct slowdown *other = &found->slowdown[i];
        if (!is_of_family(&found->slowdown[first], other))
            continue;
        if (i < first) /* it is that one's already */
            break;
        for (uint32_t r = 0; r < other->ranks; r++)
            family->rank[family->ranks++] = other->rank[r];
        count++;
    }
    return count;
}

static void ask_families(struct whatif *whatif, struct slowdowns *found)
{
    uint32_t count = found->count;
    for (uint32_t i = 0; i < count; i++) {
        struct slowdown family, *first = &found->slowdown[i];
        if (first->kind >= SLOW_LINK)
            continue;
        uint32_t size = make_family(found, i, &family);
        double together = size > 1 ? ask_question(whatif, &family) : 0;
        bool hides = 100 * together >= SHARE_PERCENT * first->length;
        for (uint32_t k = i; hides && k < count; k++)
            hides = !is_of_family(first, &found->slowdown[k]) ||
                    HIDES_TIMES * ask_question(whatif, &found->slowdown[k]) < together;
        for (uint32_t k = i + 1; hides && k < count; k++)
            if (is_of_family(first, &found->slowdown[k]))
                found->slowdown[k].gain.is_in_family = true;
        if (hides) {
            free(first->rank);
            first->rank = family.rank;
            first->ranks = family.ranks;
        } else {
            free(family.rank);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (found->slowdown[i].gain.is_in_family)
            free(found->slowdown[i].rank);
        else
            found->slowdown[kept++] = found->slowdown[i];
    found->count = kept;
}

/* Where one of its ranks alone makes nearly all of the difference, the others wait for it. */
static void leave_victims(struct whatif *whatif, struct slowdown *slowdown)
{
    bool is_few = slowdown->kind < SLOW_LINK && slowdown->ranks <= TRIMMED_MOST;
    double gain = is_few && slowdown->ranks > 1 ? ask_question(whatif, slowdown) : 0, most = 0;
    uint32_t best = 0;
    for (uint32_t i = 0; gain > 0 && i < slowdown->ranks; i++) {
        struct slowdown alone = *slowdown;
        alone.rank = &slowdown->rank[i];
        alone.ranks = 1;
        double gains = ask_question(whatif, &alone);
        best = gains > most ? i : best;
        most = fmax(most, gains);
    }
    if (gain <= 0 || 100 * most < SAME_GAIN * gain)
        return;
    slowdown->rank[0] = slowdown->rank[best];
    slowdown->ranks = 1;
}

static void ask_all_questions(struct whatif *whatif, struct slowdowns *found)
{
    struct question *question = calloc(found->count + 1, sizeof *question), *next;
    uint32_t count = 0;
    for (uint32_t i = 0; i < found->count; i++)
        leave_victims(whatif, &found->slowdown[i]);
    for (uint32_t i = 0; question && i < found->count; i++)
        if (can_ask(&found->slowdown[i]))
            question[count++] = (struct question){&found->slowdown[i], INFINITY, true, false};
    while (question && (next = next_question(whatif, question, count))) {
        next->is_done = true;
        next->slowdown->gain.seconds = fmax(next->gain, 0);
        if (next->gain > 0)
            replace_durations(whatif, next->slowdown);
        for (uint32_t i = 0; i < count; i++)
            question[i].is_stale = true;
    }
    found->failed |= !question;
    free(question);
}

/* When all questions are asked: how far the job then is from one whose peers do alike. */
static void ask_alike(struct whatif *whatif, struct slowdowns *found)
{
    double sum = 0;
    for (uint32_t i = 0; i < whatif->scenes; i++)
        sum += whatif_alike(whatif, &whatif->scene[i]);
    found->knows_alike = whatif->scenes >= SCENES_LEAST && !whatif->judged->coarse &&
                         !whatif->judged->placed;
    found->alike = found->knows_alike ? fmax(sum / whatif->scenes, 0) : 0;
}

void judge_gains(struct judged *judged, struct slowdowns *found)
{
    struct whatif whatif;
    if (whatif_begin(&whatif, judged)) {
        found->failed = true;
    } else {
        ask_families(&whatif, found);
        judge_turns(&whatif, found);
        add_uneven(&whatif, found);
        ask_all_questions(&whatif, found);
        ask_alike(&whatif, found);
    }
    whatif_free(&whatif);
}
