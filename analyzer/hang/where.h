/* where.h: where a rank is now, and what it waits for. */
#ifndef DDPCHECK_WHERE_H
#define DDPCHECK_WHERE_H

#include "analyzer/hang/waits.h"
#include "lib/finding/act.h"

/* Where a rank is: "in cudaStreamSynchronize, waiting for ncclAllReduce(...) #38 of comm 5ae7 that
 * ranks 0-2 have not called". */
struct where {
    struct act act;
    struct site site;               /* where the call was made, its time 0 if there is none */
    char ranks[MISSING_TEXT_BYTES]; /* holds act.name */
};

/* member may be NULL; graph may be NULL (no reasons then). *where must stay where it is as long as
 * its act is used. */
void where_find(const struct wait_graph *graph, const struct process *process,
                const struct member *member, struct where *where);
/* All threads that issued for a rank, of several in its process, have ended. */
bool member_has_no_thread(const struct member *member);
struct awaited wait_awaited(const struct wait_node *wait);
/* "ncclAllReduce(count=4096, float32, sum) #38 of comm 5ae7". */
void wait_text(const struct wait_node *wait, struct text *text);
int missing_shown_rank(const struct missing *missing);

#endif
