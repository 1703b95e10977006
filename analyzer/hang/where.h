/* where.h: where a rank is now, in words. */
#ifndef DDPCHECK_WHERE_H
#define DDPCHECK_WHERE_H

#include "analyzer/text.h"
#include "analyzer/hang/waits.h"

/* "in cudaStreamSynchronize, waiting for ncclAllReduce(...) #38 of comm 5ae7 that ranks 0-2 have
 * not called". member may be NULL; graph may be NULL (no reasons then). *site is where the call was
 * made, its time 0 if there is none. */
void where_text(const struct wait_graph *graph, const struct process *process,
                const struct member *member, struct text *text, struct site *site);
/* "ncclAllReduce(count=4096, float32, sum) #38 of comm 5ae7". */
void wait_text(const struct wait_node *wait, struct text *text);
/* The ranks that people know of the missing: "0-2". Returns text. */
char *missing_text(const struct wait_node *wait, bool only_stuck, char *text, size_t bytes);
int missing_shown_rank(const struct missing *missing);

#endif
