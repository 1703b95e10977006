/* collector_state.h: how the members stand, in the table member_state: what live readers show. */
#ifndef DDPCHECK_COLLECTOR_STATE_H
#define DDPCHECK_COLLECTOR_STATE_H

#include <stdbool.h>

struct collector;
struct collector_state;

/* NULL when memory is short. */
struct collector_state *collector_state_new(void);
void collector_state_free(struct collector_state *state);

/* Stores the members that changed since, twice a second at most unless `now`. A failure is no harm:
 * it is tried again the next time. */
void collector_state_store(struct collector *collector, bool now);

#endif
