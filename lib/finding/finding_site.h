/* finding_site.h: where in the program's sources a finding is. */
#ifndef DDPCHECK_FINDING_SITE_H
#define DDPCHECK_FINDING_SITE_H

#include "lib/finding/finding.h"
#include "lib/trace/site.h"

/* A side's stack: of what its ranks did, or of the call that they are in now. */
enum side_stack { SIDE_STACK_ACT, SIDE_STACK_NOW };

/* Its frames; the one that is shown is that of site_frame_beside, so that no two sides show the
 * same line where their stacks differ. */
void finding_side_frames(struct trace *trace, const struct finding *finding, int side,
                         enum side_stack which, struct shown_frames *frames);

/* The user's line where an exception ended a rank, if that is known, else of the first side that
 * has one: "trainer/train.c:176", cut from the left to `width` columns; "" if none is known.
 * `process` numbers of the finding are those of the trace. Returns text. */
char *finding_location(struct trace *trace, const struct finding *finding, int width, char *text,
                       size_t bytes);
/* The user's line of a side: of the call that its ranks are in now where that is known, else of
 * what they did. "" if none is known. Returns text. */
char *finding_side_location(struct trace *trace, const struct finding *finding, int side, int width,
                            char *text, size_t bytes);
/* How long the ranks of a hang have waited at `now_ns`; 0 if it is no wait, or not known. */
uint64_t finding_wait_ns(const struct finding *finding, uint64_t now_ns);

#endif
