/* gathered.h: what CUPTI has handed over and the trace has not got yet. Bounded: what finds no room
 * is counted. */
#ifndef DDPCHECK_TIMING_GATHERED_H
#define DDPCHECK_TIMING_GATHERED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/timing/decode.h"
#include "interpose/timing/stretches.h"

enum {
    GATHERED_WORK = 32768,  /* about half a second of very small kernels */
    GATHERED_NAMES = 1024,  /* per device; others are summed up as one */
    GATHERED_CAUSES = 8192, /* launches of operations that have not run yet */
    NAME_BYTES = 240
};

/* Work of one name on one device since it was recorded last. */
struct name_sum {
    uint64_t id; /* string_id of the text; 0: free */
    uint64_t count, total_ns, amount;
    int16_t device;
    char text[NAME_BYTES];
};

struct gathered_records {
    /* Written by the program's threads, without the lock. */
    struct {
        _Atomic uint64_t external;
        _Atomic uint32_t correlation; /* 0 none */
    } cause[GATHERED_CAUSES];
    pthread_mutex_t lock; /* of all that follows; the threads that take it are CUPTI's and ours */
    struct timed_work work[GATHERED_WORK];
    size_t count;
    uint64_t dropped, too_short;
    struct name_sum name[GATHERED_NAMES];
};

/* Finds the launch (slot, number) that `external` and the device stand for. Returns false if it is
 * none, or not one. */
typedef bool gathered_launch_function(uint64_t external, int device, struct placed_work *work);

/* The call of this correlation number is made for the operations that `external` stands for. From
 * any thread, with or without the lock. */
void gathered_name(struct gathered_records *gathered, uint32_t correlation, uint64_t external);

/* Adds a record of CUPTI's, whatever it is, of `bytes` bytes. With the lock held. */
void gathered_add(struct gathered_records *gathered, const void *record, size_t bytes);

/* Moves work that ended at `until_ns` (by CUPTI's clock) or before to `placed`, which has room for
 * GATHERED_WORK; kernels of one launch become one. With the lock held. */
size_t gathered_take(struct gathered_records *gathered, uint64_t until_ns,
                     gathered_launch_function *find, struct placed_work *placed);

#endif
