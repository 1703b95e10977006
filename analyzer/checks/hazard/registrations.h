/* registrations.h: memory that is freed while it is registered with a communicator, or is a window
 * of one; part of DC306.
 *
 * Rules: "ncclCommDeregister" and "ncclCommWindowDeregister" come before the memory is freed (NCCL
 * user guide, "User Buffer Registration"). Destroying or aborting the communicator ends its
 * registrations. */
#ifndef DDPCHECK_REGISTRATIONS_H
#define DDPCHECK_REGISTRATIONS_H

#include "analyzer/check.h"
#include "analyzer/model/model.h"

/* What a process has registered; the state of DC306 with each process. */
struct registrations {
    struct registered_memory *list;
    uint32_t count, capacity;
};

/* Of struct check: keeps the state up to date, and frees what it holds. */
event_handler registrations_on_leave;
/* A registration or a window is removed while an operation on its memory may still run. */
event_handler registrations_on_nccl;
void registrations_end(void *state);
/* `record` frees [begin, end): reports it if any of it is registered. */
void registrations_check_free(struct analyzer *analyzer, struct thread *thread,
                              const struct record *record, uint64_t begin, uint64_t end);

#endif
