/* state_rows.h: what the analyzer shows of members and waits, as rows of the tables member_state
 * and wait_state. */
#ifndef DDPCHECK_STATE_ROWS_H
#define DDPCHECK_STATE_ROWS_H

#include "analyzer/analyzer.h"
#include "lib/trace/store.h"

/* The row points into the view. */
static inline struct store_member member_row(const struct member_view *view, uint64_t now_ns)
{
    return (struct store_member){
        .comm = view->comm,
        .rank = view->rank,
        .shown_rank = view->shown_rank,
        .nranks = view->nranks,
        .process = view->process,
        .device = view->device,
        .issued = view->issued,
        .started = view->started,
        .done = view->done,
        .p2p = view->calls_p2p,
        .destroyed = view->destroyed,
        .ended = view->ended,
        .where = view->where,
        .phase = view->phase,
        .last_call = view->last_call,
        .stack = view->where_stack,
        .stack_is_address = view->where_stack_is_address,
        .since_ns = view->where_since_ns,
        .updated_ns = now_ns,
    };
}

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
