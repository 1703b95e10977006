/* collector_state.h: how the members stand, in the table member_state: what live readers show. */
#ifndef DDPCHECK_COLLECTOR_STATE_H
#define DDPCHECK_COLLECTOR_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct analyzer;
struct collector_state;
struct error;
struct store;

/* What is shown, and where it is stored. */
struct state_source {
    struct store *store; /* NULL: nothing is stored */
    struct analyzer *analyzer;
    uint64_t records; /* that the analyzer was fed; while it stays nothing is looked at */
};

/* NULL when memory is short. */
struct collector_state *collector_state_new(void);
void collector_state_free(struct collector_state *state);

/* Writes what changed since into the open transaction; if the job is at its `end`, waits that are
 * over stay. Returns 0, or -1 with err. Without the commit collector_state_forget has to follow. */
int collector_state_write(struct collector_state *state, const struct state_source *source,
                          bool end, struct error *err);
void collector_state_forget(struct collector_state *state);

/* Stores the members that changed since, twice a second at most unless `now`. A failure is no harm:
 * it is tried again the next time. state NULL: nothing happens. */
void collector_state_store(struct collector_state *state, const struct state_source *source,
                           bool now);

#endif
