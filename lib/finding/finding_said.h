/* finding_said.h: a finding's sentence with PyTorch's names of the calls in it. */
#ifndef DDPCHECK_FINDING_SAID_H
#define DDPCHECK_FINDING_SAID_H

#include "lib/finding/finding.h"
#include "lib/trace/site.h"

/* "rank 0 calls barrier() [ncclAllReduce(count=1, float32, sum)], rank 1 calls ...": NCCL's name of
 * a call alone does not say which of PyTorch's it is. `process` numbers of the finding are those of
 * the trace, which may be NULL: no name is known. The caller frees it; NULL if memory is short. */
char *finding_said(struct trace *trace, const struct finding *finding);

#endif
