/* finding_diverged.h: where the ranks of a finding diverged before NCCL could see it: calls that
 * are alike to NCCL, as the all_reduce of one number and a barrier, but stand at different lines.
 */
#ifndef DDPCHECK_FINDING_DIVERGED_H
#define DDPCHECK_FINDING_DIVERGED_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/finding/finding.h"
#include "lib/trace/trace.h"

enum { DIVERGED_BYTES = 640 };

/* How to be sure of it. */
extern const char finding_diverged_look[];

/* Writes where they diverged; false: they did not, or it is not known. The finding's code, comm,
 * number and sides are read, whose `process` numbers are those of the trace. */
bool finding_diverged(struct trace *trace, const struct finding *finding,
                      char what[DIVERGED_BYTES]);

#endif
