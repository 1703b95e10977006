/* gaps.h: between which of its calls a process does something else, for analyzer/speed. */
#ifndef DDPCHECK_SPEED_GAPS_H
#define DDPCHECK_SPEED_GAPS_H

#include "analyzer/speed/slowdown.h"

/* A place in the program: a call. */
struct host_call {
    uint64_t stack;
    bool stack_is_address;
    uint16_t api;
};

/* GAP_ITERATIONS iterations are a part: only the current part and the last are kept. */
enum { GAP_SIZES = 16, GAP_PARTS = 2, GAP_ITERATIONS = ITERATIONS_KEPT };
struct gap_sum {
    float seconds;
    uint32_t count;
};
/* From where one call returned until the next was made, with no other thread in a call. */
struct host_gap {
    struct host_call from, to;
    double seconds; /* in all */
    /* This part and the last, by length: each size begins at twice the previous. */
    struct gap_sum size[GAP_PARTS][GAP_SIZES];
};

/* A call begins or ends. Notes want of memory in the analyzer. */
void speed_host_call(const struct event *event);
/* All ranks have closed `closed` iterations: gaps outside of the judged iterations are forgotten.
 */
void speed_forget_gaps(struct speed *speed, uint64_t closed);
/* Between which calls most of the time passes on the host of the slowdown's first rank, in gaps
 * that last for about `least` seconds or longer and occur `times` times: fills in slowdown->gap,
 * NULL if that is not known, and gap_each. */
void speed_find_gap(const struct speed *speed, double least, uint64_t times,
                    struct slowdown *slowdown);

#endif
