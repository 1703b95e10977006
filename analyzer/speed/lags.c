/* lags.c: how much longer each rank's own time is than others', iteration by iteration. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/slowdown.h"

/* The iterations that all ranks have, as columns of equally many. */
struct lag_map {
    const struct speed *speed;
    uint64_t first, end, per_column;
    uint32_t columns;
    float *own; /* by rank and column: mean seconds */
    double length;
};

static void find_columns(struct lag_map *map, uint32_t columns_most)
{
    map->end = speed_closed(map->speed);
    for (uint32_t r = 0; r < map->speed->count; r++)
        if (map->first < map->speed->rank[r]->begun + 1)
            map->first = map->speed->rank[r]->begun + 1;
    if (map->end > ITERATIONS_KEPT && map->first < map->end - ITERATIONS_KEPT)
        map->first = map->end - ITERATIONS_KEPT;
    if (map->end < map->first + ITERATIONS_NEEDED || map->speed->count < 2)
        return;
    map->per_column = (map->end - map->first + columns_most - 1) / columns_most;
    map->columns = (uint32_t)((map->end - map->first) / map->per_column);
}

static void fill_own(struct lag_map *map)
{
    double sum = 0, count = 0;
    for (uint32_t r = 0; r < map->speed->count; r++)
        for (uint32_t c = 0; c < map->columns; c++) {
            double own = 0;
            uint64_t first = map->first + c * map->per_column, known = 0;
            for (uint64_t n = first; n < first + map->per_column; n++) {
                struct speed_iteration iteration;
                if (!judged_iteration(map->speed->rank[r], n, &iteration))
                    continue;
                own += speed_own(&iteration);
                sum += iteration.length;
                known++;
            }
            count += (double)known;
            map->own[(size_t)r * map->columns + c] = known ? (float)(own / (double)known) : 0;
        }
    map->length = count > 0 ? sum / count : 0;
}

/* From a column's times to what they are beyond the median rank's, as a share of an iteration. */
static void subtract_median(struct lag_map *map, uint32_t column, double *value)
{
    uint32_t ranks = map->speed->count;
    for (uint32_t r = 0; r < ranks; r++)
        value[r] = map->own[(size_t)r * map->columns + column];
    double median = speed_median(value, ranks);
    for (uint32_t r = 0; r < ranks; r++) {
        float *own = &map->own[(size_t)r * map->columns + column];
        *own = map->length > 0 ? (float)((*own - median) / map->length) : 0;
    }
}

int analyzer_visit_speed_lags(struct analyzer *analyzer, uint32_t columns_most,
                              void (*visit)(void *context, const struct speed_lag_view *view),
                              void *context)
{
    struct lag_map map = {.speed = analyzer->slot.speed};
    if (!map.speed || !map.speed->count)
        return 0;
    find_columns(&map, columns_most);
    if (!map.columns)
        return 0;
    double *value = malloc(map.speed->count * sizeof *value);
    map.own = malloc((size_t)map.speed->count * map.columns * sizeof *map.own);
    if (!value || !map.own) {
        free(value);
        free(map.own);
        errno = ENOMEM;
        return -1;
    }
    fill_own(&map);
    for (uint32_t c = 0; c < map.columns; c++)
        subtract_median(&map, c, value);
    for (uint32_t r = 0; r < map.speed->count; r++) {
        if (!map.speed->rank[r]->member)
            continue;
        const struct speed_lag_view view = {
            .shown_rank = member_shown_rank(map.speed->rank[r]->member),
            .host = map.speed->rank[r]->key.process->info.host,
            .lag = map.own + (size_t)r * map.columns,
            .columns = map.columns,
            .first = speed_number(map.speed, map.first),
            .per_column = map.per_column};
        visit(context, &view);
    }
    free(value);
    free(map.own);
    return 0;
}
