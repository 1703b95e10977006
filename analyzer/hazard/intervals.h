/* intervals.h: an interval map: the memory that work touches which is not yet known to be over.
 *
 * Ranges may overlap. Adding one, taking one out and finding those that meet an address range costs
 * O(log n) and what is found. The map is bounded: when it is full the older half goes, which can
 * only hide hazards. */
#ifndef DDPCHECK_INTERVALS_H
#define DDPCHECK_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/hazard/flight.h"

struct interval {
    uint64_t begin, end;
    struct access access;  /* what is done there */
    struct flight *flight; /* by whom; shared by its ranges */
    uint64_t reach;        /* the largest end in its subtree */
    uint32_t left, right, priority;
};

/* Zero-initialised is empty. */
struct intervals {
    struct interval *node; /* from 1; 0 is none */
    uint32_t root, used, capacity, free, count, sweep_at;
    uint32_t seed;
};

/* Adds a range; holds the flight from then on. 0 or -1 (ENOMEM). Ranges found before are no longer
 * valid. */
int intervals_add(struct intervals *ranges, uint64_t begin, uint64_t end, struct access access,
                  struct flight *flight);
/* Puts other work in the place of what is done in the range. */
void intervals_take_over(struct interval *range, struct access access, struct flight *flight);
/* Takes one out. Others that were found stay valid. */
void intervals_remove(struct intervals *ranges, struct interval *range);
/* Calls `visit` for each range that meets [begin, end), by address; it must not change the map. */
void intervals_visit(const struct intervals *ranges, uint64_t begin, uint64_t end,
                     void (*visit)(void *context, struct interval *range), void *context);
/* Calls `visit` for the member of each operation. */
void intervals_visit_members(const struct intervals *ranges,
                             void (*visit)(void *context, const struct member *member),
                             void *context);
/* Takes out those for which `goes` is true. */
void intervals_remove_where(struct intervals *ranges,
                            bool (*goes)(void *context, const struct interval *range),
                            void *context);
/* Takes out those that meet [begin, end). */
void intervals_remove_meeting(struct intervals *ranges, uint64_t begin, uint64_t end);
/* Whether it has grown so much that a sweep is due: intervals_remove_where with what is over, then
 * intervals_swept. */
bool intervals_want_sweep(const struct intervals *ranges);
/* Lets go of the older half if the sweep brought too little. */
void intervals_swept(struct intervals *ranges);
void intervals_free(struct intervals *ranges);

#endif
