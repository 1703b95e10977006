/* slow_finding.h: findings about what slows a job down. */
#ifndef DDPCHECK_SPEED_SLOW_FINDING_H
#define DDPCHECK_SPEED_SLOW_FINDING_H

#include "analyzer/findings.h"
#include "analyzer/speed/slowdown.h"

enum { SLOW_REPORTED_MAX = 64 }; /* findings of one check; more would be read by nobody */

/* State of a check, with the job: what it has reported, so that it is updated, not repeated. */
struct slow_reported {
    struct {
        uint64_t comm;
        uint32_t rank, finding;
        uint64_t judged;      /* when it was seen last, as speed->judged */
        uint64_t first, last; /* iterations that it was seen in then */
        uint64_t since;       /* from which on; it may be later than the first */
    } is[SLOW_REPORTED_MAX];
    uint32_t count;
};

/* "5.1 ms", "1.25 s". */
void slowdown_add_time(struct text *text, double seconds);
/* "1.25 times", "3.1 times", "73 times", "1700 times": no more digits than say something. */
void slowdown_add_factor(struct text *text, double factor);
/* "5.1 ms of each iteration of 17 ms (30%)". */
void slowdown_add_loss(struct text *text, const struct slowdown *slowdown);
/* "rank 3 (n1)", "ranks 4-7 (n1)", "all ranks". */
void slowdown_add_ranks(struct text *text, const struct slowdown *slowdown);
/* ": ampere_gemm, flash_fwd"; nothing where no kernel is known. */
void slowdown_add_kernels(struct text *text, const struct analyzer *analyzer,
                          const struct slowdown *slowdown);
/* "between cudaLaunchKernel() and cudaMemcpyAsync()": slowdown->gap. */
void slowdown_add_gap(struct text *text, const struct slowdown *slowdown);
/* That threads there waited for a processor. */
void slowdown_add_starved(struct text *text, const struct slowdown *slowdown);
/* Reports it, or brings what was reported of the same ranks up to date; as a note if it rests on
 * coarse times. Takes the text. */
void slowdown_report(struct analyzer *analyzer, const struct check *check,
                     const struct slowdown *slowdown, enum did did, struct text *what,
                     const char *todo);
/* Withdraws what was reported after few iterations, where more of them do not show it, or what
 * another check says of the same ranks and most of the same iterations now. */
void slowdown_withdraw(struct analyzer *analyzer, const struct check *check,
                       const struct slowdown *judged);

#endif
