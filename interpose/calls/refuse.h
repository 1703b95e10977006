/* refuse.h: refuses collectives (ddpcheck run --guard). */
#ifndef DDPCHECK_REFUSE_H
#define DDPCHECK_REFUSE_H

#include <nccl.h>

#include "interpose/record/call.h"

/* A collective that has its number, just before it is recorded. If another rank of this host
 * called something else in its place, marks call and record as refused, so that NCCL does not get
 * it, and gives its number back. A group that has a refused call launches nothing, as where NCCL
 * refuses one. */
void refuse_if_different(struct recorded_call *call, struct record *record,
                         struct local_member *member, cudaStream_t stream);

#endif
