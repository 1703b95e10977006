/* member_load.h: reads members back from the databases of a trace, as store_member wrote them. */
#ifndef DDPCHECK_MEMBER_LOAD_H
#define DDPCHECK_MEMBER_LOAD_H

#include "lib/base/error.h"
#include "lib/trace/member_state.h"
#include "lib/trace/trace.h"

/* All members of all communicators, by communicator and rank; a member that one host has seen and
 * another has not is there once. as_stored: in the order in which they were stored, which is
 * that of an analysis. The caller frees each with member_state_free, and the array. Returns 0; -1
 * with err if memory is short; 1 with err if a database can't be read to its end. */
int member_states_load(struct trace *trace, bool as_stored, struct member_state **members,
                       int *count, struct error *err);

#endif
