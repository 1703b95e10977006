/* filter.h: which rows a filter keeps. Its words must all be in a row: "allreduce train.c" as text
 * in any cell, "rank:3" (or "rank:0-7,9"), "comm:5ae7" or "state:missing" in the cell that has such
 * a thing. */
#ifndef DDPCHECK_TUI_FILTER_H
#define DDPCHECK_TUI_FILTER_H

#include "tui/rows.h"

/* True if every word of the filter is in the row. Without regard to case. */
bool filter_keeps(const struct rows *rows, const struct row *row, const char *filter);
/* Writes why the filter keeps no row: a field that does not exist, a value that is none. */
void filter_explain(const char *filter, char *text, size_t bytes);

#endif
