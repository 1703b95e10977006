/* standings.c: see standings.h. */
#include "analyzer/speed/standings.h"

#include <math.h>
#include <stdlib.h>

#include "lib/finding/code.h"
#include "analyzer/model/process.h"
#include "lib/base/rankset.h"

enum { GAIN_RANKS_BYTES = 256 };

struct rank_standing {
    uint32_t rank;
    uint64_t comm;
    enum slowdown_kind kind; /* SLOW_KINDS: it is not named */
    double lag, wait;
    uint64_t since, period;
    float trend[TREND_COLUMNS];
};

struct speed_standings {
    struct rank_standing *standing;
    uint32_t count, columns;
    uint64_t first, end, judged;
    double length;
    bool coarse;
};

void speed_standings_free(struct speed_standings *standings)
{
    if (standings)
        free(standings->standing);
    free(standings);
}

static double mean_waiting(const struct judged *judged, const struct speed_rank *rank)
{
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t n = judged->first; n < judged->end; n++) {
        struct speed_iteration iteration;
        if (!judged_iteration(rank, n, &iteration))
            continue;
        sum += iteration.share[SHARE_WAIT];
        count++;
    }
    return count ? sum / (double)count : 0;
}

/* What the rank exceeds its peers by, on average and as shares of an iteration by column. */
static void fill_standing(const struct judged *judged, uint32_t columns,
                          struct rank_standing *standing)
{
    const double *excess = judged_excess(judged, standing->rank);
    uint64_t iterations = judged->end - judged->first;
    uint64_t count[TREND_COLUMNS] = {0};
    double sum[TREND_COLUMNS] = {0};
    for (uint64_t n = 0; n < iterations; n++) {
        uint64_t column = n * columns / iterations;
        sum[column] += excess[n];
        count[column]++;
        standing->lag += excess[n] / (double)iterations;
    }
    for (uint32_t c = 0; c < columns; c++)
        standing->trend[c] = (float)(sum[c] / (double)count[c] / judged->length);
    standing->wait = mean_waiting(judged, judged->speed->rank[standing->rank]);
    standing->kind = SLOW_KINDS;
    if (judged->among[standing->rank])
        standing->comm = judged->among[standing->rank]->id;
}

static void add_named_standing(struct speed_standings *standings, const struct rank_standing *rank,
                               const struct slowdown *slowdown)
{
    struct rank_standing *standing = &standings->standing[standings->count++];
    *standing = *rank;
    standing->kind = slowdown->kind;
    standing->lag = slowdown_cost(slowdown);
    standing->since = slowdown->since;
    standing->period = slowdown->period;
    if (slowdown->comm)
        standing->comm = slowdown->comm->id;
}

static bool slowdown_names_rank(const struct slowdown *slowdown, uint32_t rank)
{
    bool found = slowdown->is_all;
    for (uint32_t i = 0; i < slowdown->ranks && !found; i++)
        found = slowdown->rank[i]->index == rank;
    return found && slowdown->is_reported;
}

/* A row for each slowdown that names the rank, or one without a name. */
static void add_rank_standings(struct speed_standings *standings, const struct rank_standing *rank,
                               const struct slowdowns *found)
{
    uint32_t before = standings->count;
    for (uint32_t i = 0; i < found->count; i++)
        if (slowdown_names_rank(&found->slowdown[i], rank->rank))
            add_named_standing(standings, rank, &found->slowdown[i]);
    if (standings->count == before)
        standings->standing[standings->count++] = *rank;
}

int speed_keep_standings(struct speed *speed, const struct judged *judged,
                         const struct slowdowns *found)
{
    uint32_t most = speed->count;
    uint64_t iterations = judged->end - judged->first;
    for (uint32_t i = 0; i < found->count; i++)
        most += found->slowdown[i].ranks;
    struct speed_standings *standings = calloc(1, sizeof *standings);
    if (standings)
        standings->standing = calloc(most + 1, sizeof *standings->standing);
    if (!standings || !standings->standing) {
        free(standings);
        return -1;
    }
    standings->columns = iterations < TREND_COLUMNS ? (uint32_t)iterations : TREND_COLUMNS;
    standings->first = judged->first;
    standings->end = judged->end;
    standings->judged = speed->judged;
    standings->length = judged->length;
    standings->coarse = judged->coarse;
    for (uint32_t r = 0; r < speed->count; r++) {
        struct rank_standing rank = {.rank = r};
        if (!speed->rank[r]->member)
            continue;
        fill_standing(judged, standings->columns, &rank);
        if (!rank.comm)
            rank.comm = speed->rank[r]->member->comm->id;
        add_rank_standings(standings, &rank, found);
    }
    speed_standings_free(speed->standings);
    speed->standings = standings;
    return 0;
}

uint64_t analyzer_speed_judged(const struct analyzer *analyzer)
{
    const struct speed *speed = analyzer->slot.speed;
    return speed && speed->standings ? speed->standings->judged : 0;
}

static const struct {
    const char *words;
    enum code code;
} kinds[] = {
    [SLOW_HOST] = {"slow host", DC601},     [SLOW_DEVICE] = {"slow device", DC604},
    [SLOW_WORK] = {"more work", DC605},     [SLOW_LINK] = {"slow link", DC606},
    [SLOW_SINCE] = {"slower since", DC607}, [SLOW_PAUSE] = {"pauses", DC608},
    [SLOW_UNEVEN] = {"uneven work", DC609}, [SLOW_STAGES] = {"uneven stages", DC610},
    [SLOW_KINDS] = {"", CODE_NONE},
};

void analyzer_visit_speed_standings(struct analyzer *analyzer,
                                    void (*visit)(void *context,
                                                  const struct speed_standing_view *view),
                                    void *context)
{
    const struct speed *speed = analyzer->slot.speed;
    const struct speed_standings *standings = speed ? speed->standings : NULL;
    for (uint32_t i = 0; standings && i < standings->count; i++) {
        const struct rank_standing *standing = &standings->standing[i];
        const struct speed_rank *rank = speed->rank[standing->rank];
        const struct speed_standing_view view = {
            .shown_rank = member_shown_rank(rank->member),
            .process = rank->key.process->index,
            .comm = standing->comm,
            .kind = kinds[standing->kind].words,
            .code = code_name(kinds[standing->kind].code),
            .lag_s = standing->lag,
            .wait_s = standing->wait,
            .length_s = standings->length,
            .since = standing->since ? speed_number(speed, standing->since) : 0,
            .period = standing->period,
            .first = speed_number(speed, standings->first),
            .last = speed_number(speed, standings->end - 1),
            .is_coarse = standings->coarse,
            .trend = standing->trend,
            .columns = standings->columns,
        };
        visit(context, &view);
    }
}

/* "" if it is all. */
static char *ranks_of(const struct slowdown *slowdown, char *text, size_t bytes)
{
    struct rankset ranks = {0};
    for (uint32_t i = 0; i < slowdown->ranks && !slowdown->is_all; i++)
        if (slowdown->rank[i]->member && member_shown_rank(slowdown->rank[i]->member) >= 0)
            rankset_add(&ranks, member_shown_rank(slowdown->rank[i]->member));
    *text = '\0';
    if (rankset_count(&ranks))
        rankset_text(&ranks, text, bytes);
    rankset_free(&ranks);
    return text;
}

void analyzer_visit_speed_gains(struct analyzer *analyzer,
                                void (*visit)(void *context, const struct speed_gain_view *view),
                                void *context)
{
    const struct slowdowns *found = analyzer->slot.speed ? analyzer->slot.speed->found : NULL;
    char ranks[GAIN_RANKS_BYTES];
    struct speed_gain_view view = {.ranks = ranks};
    if (!found || found->length <= 0)
        return;
    view.length_s = view.left_s = found->length;
    for (uint32_t i = 0; i < found->count; i++) {
        const struct slowdown *slowdown = &found->slowdown[i];
        if (!slowdown->is_reported || slowdown->until)
            continue;
        ranks_of(slowdown, ranks, sizeof ranks);
        view.kind = kinds[slowdown->kind].words;
        view.code = code_name(kinds[slowdown->kind].code);
        view.gain_s = fmin(slowdown_cost(slowdown), view.left_s);
        view.left_s -= view.gain_s;
        visit(context, &view);
    }
    if (!found->knows_alike)
        return;
    ranks[0] = '\0';
    view.kind = view.code = "";
    view.gain_s = fmin(found->alike, view.left_s);
    view.left_s -= view.gain_s;
    visit(context, &view);
}
