/* state_rows.h: what the analyzer shows of waits and speed, as rows of the tables wait_state and
 * speed_state. */
#ifndef DDPCHECK_STATE_ROWS_H
#define DDPCHECK_STATE_ROWS_H

#include <math.h>
#include <stdio.h>

#include "analyzer/analyzer.h"
#include "lib/trace/store.h"

/* The row points into the view. */
static inline struct store_wait wait_row(const struct wait_view *view, int id)
{
    return (struct store_wait){
        .id = id,
        .depth = view->depth,
        .process = view->process,
        .shown_rank = view->shown_rank,
        .text = view->text,
        .in_cycle = view->in_cycle,
        .stuck = view->stuck,
        .again = view->again,
        .since_ns = view->since_ns,
        .stack = view->stack,
        .stack_is_address = view->stack_is_address,
    };
}

enum { TREND_BYTES = 16 * 8 };

/* The row points into the view and into `trend`. */
static inline struct store_speed speed_row(const struct speed_standing_view *view, int id,
                                           char trend[TREND_BYTES])
{
    int length = 0;
    trend[0] = '\0';
    for (uint32_t i = 0; i < view->columns && length < TREND_BYTES - 8; i++) {
        double percent = fmin(fmax(100 * (double)view->trend[i], -999), 9999);
        length += snprintf(trend + length, 8, "%s%ld", i ? "," : "", lrint(percent));
    }
    return (struct store_speed){
        .id = id,
        .shown_rank = view->shown_rank,
        .process = view->process,
        .comm = view->comm,
        .kind = view->kind,
        .code = view->code,
        .lag_ns = (int64_t)(1e9 * view->lag_s),
        .wait_ns = (int64_t)(1e9 * view->wait_s),
        .length_ns = (int64_t)(1e9 * view->length_s),
        .since = view->since,
        .period = view->period,
        .first = view->first,
        .last = view->last,
        .coarse = view->is_coarse,
        .trend = trend,
    };
}

#endif
