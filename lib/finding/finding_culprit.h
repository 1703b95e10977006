/* finding_culprit.h: the rank that the others of a hang wait for, placed on one line. */
#ifndef DDPCHECK_FINDING_CULPRIT_H
#define DDPCHECK_FINDING_CULPRIT_H

#include "lib/finding/finding.h"
#include "lib/trace/site.h"

enum { CULPRIT_BYTES = 640 };

/* Of a hang the side that the others wait for: its ranks left the call out, have not come, or are
 * gone. -1: none, as where all wait for each other. */
int finding_culprit(const struct finding *finding);
/* Of a rank that leaves, and stands in no line of the program's any more (Python frees objects),
 * the place of its last call that has one. The finding has a culprit. */
void finding_culprit_last_line(struct trace *trace, const struct finding *finding,
                               struct shown_frames *where);
/* "rank 6 (node-b, GPU 2, pid 18146) is in load_batch() loader.c:17, 28 s". Of one that ended:
 * "... was killed by SIGSEGV after load_batch() loader.c:17; core: coredumpctl gdb 18146". `where`
 * is the stack of where its ranks are, or were last; `waited_ns` how long the others wait (0: not
 * known). The finding's processes are the trace's. Returns text. */
char *finding_culprit_words(struct trace *trace, const struct finding *finding,
                            const struct shown_frames *where, uint64_t waited_ns,
                            char text[CULPRIT_BYTES]);

#endif
