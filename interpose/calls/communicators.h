/* communicators.h: when a member of a communicator exists. */
#ifndef DDPCHECK_COMMUNICATORS_H
#define DDPCHECK_COMMUNICATORS_H

#include <nccl.h>

#include "interpose/shim/thread.h"

/* Emits the member (notice_member), once. */
void communicators_announce(struct shim_thread *thread, struct local_member *member);

/* The outermost ncclGroupEnd returned: the communicators whose creation the group held exist. */
void communicators_group_ended(struct shim_thread *thread, ncclResult_t result);

#endif
