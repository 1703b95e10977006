/* watched.h: the communicators that ticks look at. */
#ifndef DDPCHECK_WATCHED_H
#define DDPCHECK_WATCHED_H

#include "analyzer/engine.h"

/* Ticks look at it from now on. Want of memory is noted. */
void comm_watch(struct comm *comm);
/* A member's process ended, or left it. */
void comm_note_end(struct comm *comm);
/* Those that ticks look at, in order of their creation: i = 0, 1, ... until NULL. */
struct comm *comm_watched(struct analyzer *analyzer, uint32_t i);

#endif
