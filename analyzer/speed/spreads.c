/* spreads.c: medians and quartiles of what readers compare between two runs. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/standings.h"

/* Fills in the quartiles of values, which are reordered. */
static void fill_quartiles(double *value, size_t count, struct speed_spread_view *view)
{
    view->median_s = speed_median(value, count);
    view->low_s = value[(count - 1) / 4];
    view->high_s = value[(3 * count - 1) / 4];
    view->count = count;
}

static bool spread_iterations(const struct speed_rank *rank, double *value,
                              struct speed_spread_view *view)
{
    size_t count = 0;
    for (uint32_t i = 0; i < rank->iterations; i++)
        if (rank->iteration[i].number)
            value[count++] = rank->iteration[i].length;
    if (!rank->member || count < ITERATIONS_NEEDED)
        return false;
    *view = (struct speed_spread_view){.what = SPREAD_ITERATION,
                                       .shown_rank = member_shown_rank(rank->member)};
    fill_quartiles(value, count, view);
    return true;
}

static bool spread_transfers(const struct speed *speed, const struct speed_comm *comm,
                             double *value, struct speed_spread_view *view)
{
    size_t count = 0;
    uint64_t end = speed_closed(speed);
    for (uint64_t n = end > ITERATIONS_KEPT ? end - ITERATIONS_KEPT : 0; n < end; n++) {
        double transfer = speed_comm_transfer(comm, n);
        if (transfer > 0)
            value[count++] = transfer;
    }
    if (count < ITERATIONS_NEEDED)
        return false;
    *view = (struct speed_spread_view){.what = SPREAD_TRANSFER, .shown_rank = -1, .comm = comm->id};
    fill_quartiles(value, count, view);
    return true;
}

/* Of a rank's lag the parts of the trend are compared. */
struct lag_spreads {
    void (*visit)(void *context, const struct speed_spread_view *view);
    void *context;
    int last_rank;
};

static void spread_lag(void *context, const struct speed_standing_view *standing)
{
    struct lag_spreads *spreads = context;
    double value[TREND_COLUMNS];
    struct speed_spread_view view = {.what = SPREAD_LAG, .shown_rank = standing->shown_rank};
    if (standing->shown_rank == spreads->last_rank || !standing->columns)
        return; /* it is named twice */
    spreads->last_rank = standing->shown_rank;
    for (uint32_t c = 0; c < standing->columns; c++)
        value[c] = (double)standing->trend[c] * standing->length_s;
    fill_quartiles(value, standing->columns, &view);
    spreads->visit(spreads->context, &view);
}

int analyzer_visit_speed_spreads(struct analyzer *analyzer,
                                 void (*visit)(void *context, const struct speed_spread_view *view),
                                 void *context)
{
    const struct speed *speed = analyzer->slot.speed;
    struct lag_spreads spreads = {.visit = visit, .context = context, .last_rank = -1};
    struct speed_spread_view view;
    double *value = malloc((ITERATIONS_KEPT + 1) * sizeof *value);
    if (!value) {
        errno = ENOMEM;
        return -1;
    }
    for (uint32_t r = 0; speed && r < speed->count; r++)
        if (spread_iterations(speed->rank[r], value, &view))
            visit(context, &view);
    for (struct speed_comm *comm = speed ? speed->comms : NULL; comm; comm = comm->hh.next)
        if (spread_transfers(speed, comm, value, &view))
            visit(context, &view);
    free(value);
    analyzer_visit_speed_standings(analyzer, spread_lag, &spreads);
    return 0;
}
