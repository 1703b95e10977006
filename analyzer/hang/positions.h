/* positions.h: where processes stand that nobody watched, by their stacks (notice_position). */
#ifndef DDPCHECK_POSITIONS_H
#define DDPCHECK_POSITIONS_H

#include "analyzer/engine.h"
#include "lib/base/rankset.h"

/* The last that is known of a process. */
struct position {
    enum place_kind place;
    bool moves, works; /* POSITION_MOVES, POSITION_WORKS */
    const char *text;  /* what it is in; "" its own code */
    uint64_t text_id;
    int lasts_s;
    struct site site;
};

/* Ranks that stand in the same. */
struct position_group {
    const struct process *example;
    struct rankset ranks;
    bool all_work;
};
struct position_groups {
    struct position_group *group; /* those that wait in an operation first, then the largest */
    int count, ranks;
    bool some_move; /* of those that wait: the job gets on */
};

/* Keeps it with the process. ENGINE_*. */
int position_feed(struct event *event);
void position_free(struct position *position);
/* In a collective, behind one, or in a set-up. */
bool position_waits(const struct position *position);

/* The groups of all processes that have a position. Returns 0 (positions_free them), -1 when
 * memory is short. */
int positions_group(const struct analyzer *analyzer, struct position_groups *groups);
void positions_free(struct position_groups *groups);

#endif
