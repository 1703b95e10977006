/* finding_said.h: a finding's sentence with PyTorch's names of the calls in it. */
#ifndef DDPCHECK_FINDING_SAID_H
#define DDPCHECK_FINDING_SAID_H

#include "lib/finding/finding.h"
#include "lib/trace/site.h"

/* What the ranks of a side did, and where. */
struct said_side {
    const struct act *act;
    const char *call; /* its words */
    int process;
    uint64_t stack;
    bool stack_is_address;
};

/* "rank 0 calls barrier() [ncclAllReduce(count=1, float32, sum)], rank 1 calls ...": NCCL's name of
 * a call alone does not say which of PyTorch's it is. `trace` may be NULL: no name is known. The
 * caller frees it; NULL if memory is short. */
char *said_with_names(struct trace *trace, const char *what, const struct said_side *side,
                      int sides);
/* The same of a finding whose `process` numbers are those of the trace. */
char *finding_said(struct trace *trace, const struct finding *finding);

/* What of PyTorch made the side's call; "" if its ranks made none, or nothing is known. */
char *said_operation(struct trace *trace, const struct said_side *side, char *text, size_t bytes);

#endif
