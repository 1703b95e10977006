/* diff_print.h: the forms in which `ddpcheck diff` says what differs. */
#ifndef DDPCHECK_DIFF_PRINT_H
#define DDPCHECK_DIFF_PRINT_H

#include <jansson.h>

#include "cmd/diff/diff_compare.h"
#include "cmd/diff/diff_dropped.h"
#include "cmd/diff/diff_order.h"
#include "cmd/diff/diff_setup.h"
#include "cmd/diff/diff_speed.h"
#include "cmd/report/page.h"

struct diff_report {
    struct diff_side *const *side;
    const char *name[2]; /* what the sides are called: "A" and "B", "rank 0" and "rank 3" */
    const struct diff_pairs *pairs;
    const struct diff_gaps *gaps; /* what is not compared */
    const struct diff_result *result;
    const struct diff_orders *orders;
    const struct diff_setup *setup;
    const struct diff_speed *speed;
    int limit; /* differences that are reported; the others are counted */
};

/* True if the ranks of both sides, their communicators and what they called are alike. */
bool diff_equal(const struct diff_report *report);

/* Both return 0, or -1 with err. */
int diff_print_text(const struct diff_report *report, struct page *page, struct error *err);
int diff_print_json(const struct diff_report *report, FILE *out, struct error *err);

/* What of the two is not compared: communicators and ranks that only one has, calls that one
 * dropped. */
void diff_print_not_compared(const struct diff_report *report, struct page *page);

/* Their parts about speed, which change no exit status. */
void diff_print_speed_text(const struct diff_report *report, struct page *page);
json_t *diff_speed_json(const struct speed_difference *difference);

/* The ranks of a communicator that have a trace: "0-3". Returns text. */
char *diff_comm_ranks(const struct diff_side *side, const struct diff_comm *comm, char *text,
                      size_t bytes);

/* Operations of a member from `at` on, `most` at most, in op. Returns how many, or -1 with err. */
int diff_read_ops(struct diff_side *side, int member, uint64_t at, int most, struct diff_op *op,
                  struct error *err);

#endif
