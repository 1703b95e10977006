/* replay.h: an iteration of the job again, with other durations. For analyzer/speed.
 *
 * * A rank arrives at an operation when its own time before it is over; the operation ends on all
 * members together, its transfer after the last has arrived; a rank that awaits it goes on then.
 * Where sends are buffered, one ends by itself, and its receive not before. */
#ifndef DDPCHECK_SPEED_REPLAY_H
#define DDPCHECK_SPEED_REPLAY_H

#include "analyzer/speed/steps.h"

/* One iteration of all ranks. */
struct replay {
    uint32_t ranks, steps, meetings;
    const struct speed_step **of;    /* by rank; NULL: it has none */
    uint32_t *first;                 /* by rank: its first step; one more than ranks */
    uint32_t *meeting;               /* by step; UINT32_MAX: none */
    uint32_t *arrival;               /* by step: where its rank arrives at that meeting */
    uint32_t *queued;                /* by step: the meeting that it is queued behind */
    uint32_t *rank;                  /* by step */
    uint32_t *coming;                /* steps that arrive, by meeting */
    uint32_t *begins;                /* by meeting: its first of these; one more than meetings */
    uint32_t *members;               /* by meeting: those that were recorded */
    bool buffers_sends;              /* a send ends, although nobody receives it yet */
    double *start;                   /* by rank: when its iteration began, after the first one's */
    uint64_t *comm;                  /* by meeting: its communicator */
    double *work, *delay, *transfer; /* as recorded; by step, by step, by meeting */
    double length;                   /* of the replay with these; 0: it came to no end */
    double recorded;                 /* of the longest rank */
    bool finds_delays;               /* while `delay` is what was idle: replay.c */
    struct replay_room *room;
};

/* Makes one of what was kept. NULL: memory is short, or a rank's steps were not kept. */
struct replay *replay_new(const struct speed *speed, uint64_t iteration);
void replay_free(struct replay *replay);
/* How long the iteration takes with these durations, by step and by meeting. 0: ranks wait for each
 * other for ever, so the model does not fit. */
double replay_run(const struct replay *replay, const double *work, const double *delay,
                  const double *transfer);

#endif
