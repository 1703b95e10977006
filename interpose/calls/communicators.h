/* communicators.h: when a member of a communicator exists. */
#ifndef DDPCHECK_COMMUNICATORS_H
#define DDPCHECK_COMMUNICATORS_H

#include <nccl.h>

#include "interpose/record/thread.h"

/* Tells the collector of the member (notice_member), once. */
void communicators_announce(struct thread *thread, struct member *member);

/* The outermost ncclGroupEnd returned: the communicators whose creation the group held exist. */
void communicators_group_ended(struct thread *thread, ncclResult_t result);

#endif
