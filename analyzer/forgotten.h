/* forgotten.h: communicators that every member has destroyed leave memory.
 *
 * The newest of them stay as they are, as many as were in use at one time: so what a job destroys
 * at its end is still there for the report, and memory at most doubles. An older one is forgotten
 * after the first tick that finds it destroyed, for then all that its members did is known, and
 * its findings are made. Operations that
 * streams, graphs or iterations still hold may refer to it: until they are gone its shell stays.
 * Of a forgotten communicator its identity is kept, so that a second use of its unique id is found.
 */
#ifndef DDPCHECK_FORGOTTEN_H
#define DDPCHECK_FORGOTTEN_H

#include "analyzer/engine.h"

/* A tick was judged: forgets what is due. */
void forgotten_tick(struct analyzer *analyzer);
void forgotten_free(struct analyzer *analyzer);

/* Frees a communicator that is in no list any more, with its members. */
void forgotten_free_comm(const struct analyzer *analyzer, struct comm *comm);

#endif
