/* ranks.h: the rows of the view of processes. */
#ifndef DDPCHECK_TUI_RANKS_H
#define DDPCHECK_TUI_RANKS_H

#include "tui/members.h"
#include "tui/view.h"

enum { CELL_RANK, CELL_HOST, CELL_DEVICE, CELL_STATE, CELL_LATE, CELL_LOST, CELL_WHERE };

/* What is known of a process beside its members. */
struct process_view {
    const struct member_state *member; /* the one that it was seen in last; NULL none */
    int rank;                          /* that people know; -1: none, or several */
    uint64_t lost;
    bool ended;
    bool is_missing; /* the others of the worst finding wait for it */
    int how, value, out_of_memory;
    double late_ns; /* mean of its last operations */
    int late_count;
};

/* "alive", "exit 1", "SIGKILL", and how bad that is. */
enum tone ranks_state_text(const struct process_info *info, const struct process_view *process,
                           char *text, size_t bytes);
/* How much later than the first rank it reached its last operations; 0: not known. */
uint64_t ranks_late_ns(const struct process_view *process);
/* The cells that a process and a group of them share. */
void ranks_set_cells(struct source *source, const struct query *query,
                     const struct process_info *info, const struct process_view *process,
                     struct rows *rows, struct row *row);
/* `ranks`, marked where the others of the worst finding wait for them. */
void ranks_set_ranks(const struct query *query, const struct process_view *process,
                     const char *ranks, struct row *row);
void ranks_add_process(struct source *source, const struct query *query, int index,
                       const struct process_view *process, struct rows *rows);

/* A hash of the state: equal for processes that are one row. */
uint64_t ranks_fold_key(const struct process_info *info, const struct process_view *process);
/* A row for each state of the processes, which are in the order `order`. Returns 0, or -1 with
 * err. */
int ranks_add_folded(struct source *source, const struct query *query, const int *order,
                     const struct process_view *process, struct rows *rows, struct error *err);

#endif
