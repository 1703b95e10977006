/* states.h: the zeroed state that checks keep with the job, processes, threads, communicators and
 * members.
 *
 * All checks' state of one owner is one block, made at the first use, so that an owner that no
 * check needs costs a pointer. */
#ifndef DDPCHECK_STATES_H
#define DDPCHECK_STATES_H

#include "analyzer/engine.h"

/* Decides where each check's state is in the block of an owner. */
void states_plan(struct analyzer *analyzer, const struct check *const list[CHECK_COUNT]);
/* The check's state in the owner's block, which is made if it is not there. NULL, with
 * analyzer->failed, if memory is short. */
void *state_get(struct analyzer *analyzer, const struct check *check, enum owner owner,
                void **block);
/* The state, NULL if there is no block yet. */
void *state_find(const struct analyzer *analyzer, const struct check *check, enum owner owner,
                 void *block);
/* Frees the block and what the checks' state in it holds. */
void states_free(const struct analyzer *analyzer, enum owner owner, void **block);

/* Frees what the rooms keep in the slots of an owner (slots.def), and clears these. */
void job_slots_free(struct job_slots *slot);
void process_slots_free(struct process_slots *slot);
void comm_slots_free(struct comm_slots *slot);
void member_slots_free(struct member_slots *slot);

#endif
