/* hang_report.h: one wait as a finding: what kind of hang it is, and its words. */
#ifndef DDPCHECK_HANG_REPORT_H
#define DDPCHECK_HANG_REPORT_H

#include "analyzer/checks/hang/hang_sides.h"

/* Why nobody comes; the first three explain every other wait of theirs. */
enum hang_kind {
    HANG_ENDED,
    HANG_LEFT,
    HANG_GROUP,
    HANG_MISSING,
    HANG_SETUP,
    HANG_SPLIT,
    HANG_LATE
};

enum hang_kind hang_kind(const struct wait_node *wait);
/* Reports the wait as what it is, or in the place of what was only possible. `component`: whose
 * processes are stuck with it; -1 none. */
void hang_report(struct analyzer *analyzer, const struct wait_graph *graph,
                 const struct wait_node *wait, enum hang_kind kind, enum certainty certainty,
                 int component);

#endif
