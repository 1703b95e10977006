/* regular.h: whether long iterations come so regularly that they are pauses. */
#ifndef DDPCHECK_SPEED_REGULAR_H
#define DDPCHECK_SPEED_REGULAR_H

#include "analyzer/speed/speed.h"

enum { PAUSES_LEAST = 4 };

/* Iterations that are longer than usual by far. */
struct pause_list {
    size_t at[ITERATIONS_KEPT];
    double each[ITERATIONS_KEPT]; /* seconds beyond the usual */
    size_t count, period;
    double extra;  /* of all of them */
    bool varies;   /* the period is a mean */
    double chance; /* how probable it is that chance makes them so regular */
};

/* Whether such chance is small enough. */
bool pauses_are_clear(double chance);
/* Which of `all`, in `count` iterations, come so regularly; without `each`. False: none do. */
bool pauses_find_regular(const struct pause_list *all, size_t count, struct pause_list *pauses);

#endif
