/* finding_store.h: findings in the trace database. */
#ifndef DDPCHECK_FINDING_STORE_H
#define DDPCHECK_FINDING_STORE_H

#include "lib/base/error.h"
#include "lib/finding/finding.h"
#include "lib/trace/store.h"

/* In the database of a job, the hub's findings have lower ids than those that it has from hosts. */
enum { FINDING_TAKEN_FIRST = 1 << 16 };

/* Writes the finding, fields and words, or its new state (the same id). Returns 0, or -1 with
 * err. */
int finding_store(struct store *store, const struct finding *finding, struct error *err);

/* The act of a stored row, without its calls; its texts are those of the row. DID_OTHER without a
 * name if this version does not know its `did`. */
struct act act_of_row(const struct store_act *row);
/* Adds a call of the act. */
void act_take_call(struct act *act, const struct store_call *call);
/* Calls a communicator that the act waits in by a row of finding_comm. */
void act_take_title(struct act *act, uint64_t comm, const char *title);

#endif
