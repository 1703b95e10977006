/* backward_passes.h: how often a process ran PyTorch's backward, and in how many of these DDP
 * reduced gradients: with no_sync() it does so in some only. */
#ifndef DDPCHECK_BACKWARD_PASSES_H
#define DDPCHECK_BACKWARD_PASSES_H

#include "lib/finding/member_calls.h"

struct backward_passes {
    unsigned passes, reducing; /* reducing: of passes */
    /* As many passes came before each reduction, and no more since the last: kernels of another
     * thread that are launched in the middle of a pass would be counted as its end. */
    bool is_regular;
};

/* From the first of the calls, which is taken to be before the first pass, up to the process's
 * record with the serial `until`. A pass is a row of kernels that autograd launched, without
 * another kernel between them. No passes where the trace has no kernels, or not their stacks. */
struct backward_passes backward_passes_count(struct trace *trace, const struct member_calls *calls,
                                             uint64_t until);
/* Whether DDP's reduction of gradients made the call. */
bool backward_passes_made(struct trace *trace, const struct member_calls *calls,
                          const struct made_at *at);

#endif
