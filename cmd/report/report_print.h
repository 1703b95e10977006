/* report_print.h: the forms that a report is printed in. */
#ifndef DDPCHECK_REPORT_PRINT_H
#define DDPCHECK_REPORT_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/report/page.h"
#include "cmd/report/report_model.h"
#include "lib/trace/site.h"

struct report_parts {
    bool all_ranks; /* a row for each rank, not for each state */
    bool verbose;   /* times, processes and whole stacks */
    bool env;       /* variables, versions and facts of hosts */
    bool speed;     /* where the iterations' time went */
};
/* For people: findings of at most a screen each, then where the time went and where the ranks
 * are, then what the trace is worth. */
void report_print_text(struct report *report, struct page *page, const struct report_parts *parts);

/* Where the ranks of each communicator are: ranks in an equal state on one line, unless all_ranks.
 */
void report_print_members(const struct report *report, struct page *page, bool all_ranks);

/* The findings that the user chose to hide, and what could not be checked; verbose: each check's
 * reason on a line of its own. */
void report_print_unshown(const struct report *report, struct page *page, bool verbose);
/* Where the iterations of each rank went, and how long transfers take. */
void report_print_speed(struct report *report, struct page *page, bool all_ranks);
/* What a step of the waterfall removes: "no slow host, rank 1". Returns text. */
enum { GAIN_BYTES = 320 };
char *report_gain_words(const struct speed_gain_view *view, char *text, size_t bytes);
/* Variables, versions and facts of hosts: on one line what all ranks have alike. */
void report_print_environment(const struct report *report, struct page *page);
/* How complete the trace is. */
void report_print_trace(const struct report *report, struct page *page);

/* Where the threads were when the job hung, if it was asked: threads with equal stacks as one
 * group. */
void report_print_stacks(const struct report *report, struct page *page, bool all);

/* Frames of a stack, a line each: the label before the first in column[0], functions from column[1]
 * on, places in a column of their own, as far to the right as the longest function asks. */
void report_print_frames(struct page *page, const char *label, const int column[2],
                         const struct frame *frame, int count);

/* For programs: JSON lines (docs/json.md). Returns 0, or -1 with err. */
/* Of the parts, `speed` and `env` add lines. */
int report_print_json(struct report *report, const struct report_parts *parts, FILE *out,
                      struct error *err);
/* The lines of the environment; 0, or -1 when memory or room for the output is short. */
int report_print_json_environment(const struct report *report, FILE *out);
/* The lines of the stacks alone. */
int report_print_json_stacks(struct report *report, FILE *out, struct error *err);

#endif
