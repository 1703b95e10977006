/* own_members.h: the members of communicators that a process is. */
#ifndef DDPCHECK_OWN_MEMBERS_H
#define DDPCHECK_OWN_MEMBERS_H

#include "analyzer/model/model.h"

/* The process is the member from now on. 0, or -1 when memory is short: then own_member() does not
 * find it. */
int own_member_add(struct process *process, struct member *member);
/* Its communicator is forgotten, with all members of it. */
void own_member_remove(struct member *member);
/* It destroyed the communicator: walks over the process's members come to it last. */
void own_member_put_last(struct member *member);

/* The process's first member of the communicator, NULL if it has none; own_next leads to others. */
struct member *own_member_first(const struct process *process, uint64_t comm);
/* The one with that rank; any of them for RECORD_NO_RANK or where it is the only one. NULL: none.
 */
struct member *own_member(const struct process *process, uint64_t comm, int rank);

#endif
