/* state_rows.h: what the analyzer shows of waits, as rows of the table wait_state. */
#ifndef DDPCHECK_STATE_ROWS_H
#define DDPCHECK_STATE_ROWS_H

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

#endif
