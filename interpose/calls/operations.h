/* operations.h: an operation that is issued again without a call of its own. */
#ifndef DDPCHECK_OPERATIONS_H
#define DDPCHECK_OPERATIONS_H

#include <cuda_runtime_api.h>

#include "interpose/calls/calls.h"
#include "interpose/calls/comms.h"

/* ENTER and LEAVE, within an open group, of what was captured as `record`, with a number of its
 * own. */
void operation_replay(struct call *call, struct member *member, const struct record *captured,
                      cudaStream_t stream);

#endif
