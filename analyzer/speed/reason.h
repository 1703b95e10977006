/* reason.h: why a rank is slower than its peers, or than it was. For analyzer/speed. */
#ifndef DDPCHECK_SPEED_REASON_H
#define DDPCHECK_SPEED_REASON_H

#include "analyzer/speed/slowdown.h"

/* Over the iterations of a rank. */
struct means {
    double idle, queued, compute, transfer; /* in a usual iteration */
    double kernels, operations, bytes, launches, threads;
};
struct means slowdown_means_of(const struct judged *judged, const struct speed_rank *rank);
/* Enough more of it to be more work. */
bool slowdown_is_more(double value, double peers);

/* What of its own time is longer than the peers', of slowdown->lost. SLOW_KINDS: a transfer, which
 * all members of the slow communicator share, or operations were queued though no kernel ran. */
enum slowdown_kind slowdown_find_reason(const struct judged *judged, uint32_t index,
                                        struct slowdown *slowdown);
/* Whether its kernels alone take nearly so much longer than its peers': no wait for others can look
 * like that. */
bool slowdown_computes_longer(const struct judged *judged, uint32_t index, double lost);

/* The slowdown of a rank in the judged iterations, as a start. */
struct slowdown slowdown_of_rank(const struct judged *judged, uint32_t index,
                                 const struct speed_rank *const *rank, double lost);
/* Adds it, or its rank to that of other ranks of the host, or with more work of the pipeline, that
 * lose alike for the same reason, if that is found[from] or later. */
void slowdowns_add_rank(const struct judged *judged, struct slowdowns *found, uint32_t from,
                        const struct slowdown *slowdown);

#endif
