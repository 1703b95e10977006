/* operations.h: an operation that is issued again without a call of its own. */
#ifndef DDPCHECK_OPERATIONS_H
#define DDPCHECK_OPERATIONS_H

#include <cuda_runtime_api.h>

#include "interpose/record/call.h"
#include "interpose/shim/comms.h"

/* ENTER and LEAVE, within an open group, of what was captured as `record`, with a number of its
 * own. */
void operation_replay(struct recorded_call *call, struct local_member *member,
                      const struct record *captured, cudaStream_t stream);

#endif
