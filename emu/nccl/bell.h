/* bell.h: how ranks wait for each other in shared memory without burning a core.
 *
 * A bell is a number that a rank changes when it has news. A waiter reads it, looks for the news,
 * and sleeps (futex) only while the bell still has the number it read. Nothing here belongs to a
 * process, so one that is killed leaves nothing locked: it just never rings again. */
#ifndef DDPCHECK_EMU_NCCL_BELL_H
#define DDPCHECK_EMU_NCCL_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bell {
    _Atomic uint32_t number;
    _Atomic uint32_t waiters; /* too high after a kill, which only costs needless wake calls */
};

/* Who may end a wait early: *stop has reached `level`, or the device has failed (-1: none). */
struct guard {
    const atomic_int *stop;
    int level;
    int device;
};

bool guard_stopped(const struct guard *guard);

void bell_ring(struct bell *bell);
/* The number to hand to bell_wait; read it before looking for news. */
uint32_t bell_read(const struct bell *bell);
/* Sleeps while the number is `seen`; at most a tenth of a second, so that a failed device, which
 * rings no bell, is noticed. */
void bell_wait(struct bell *bell, uint32_t seen);

/* A meeting point that all `ranks` members of a communicator pass again and again. */
struct rendezvous {
    _Atomic uint64_t arrivals; /* of all members, ever */
    struct bell bell;
};

/* Announces the caller's *passed'th arrival and waits for that of all others. Adds 1 to
 * *passed. Returns false if the guard stopped the wait. */
bool meeting_attend(struct rendezvous *meeting, int ranks, uint64_t *passed,
                    const struct guard *guard);

#endif
