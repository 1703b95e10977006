/* producer.h: one watched process: its ring file, whether it lives, how far its GPU streams got. */
#ifndef DDPCHECK_PRODUCER_H
#define DDPCHECK_PRODUCER_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/batch.h"
#include "collector/liveness.h"
#include "collector/progress_watch.h"
#include "collector/run_delay.h"
#include "lib/trace/ring_reader.h"

struct producer {
    struct ring_reader *reader; /* NULL after its file turned out damaged */
    bool damage_reported;       /* to the analyzer */
    char *path;                 /* of the ring file */
    int process;                /* number in the database */
    struct liveness liveness;
    struct watched_progress *progress;
    struct progress_sample sample[PROGRESS_SAMPLES]; /* taken, and not in a batch yet */
    int samples;
    struct ring_progress slot[RING_SLOTS_MAX]; /* as last reported */
    uint64_t lost[RING_KINDS], hashes_lost;
    uint64_t highest_serial; /* of the records taken so far */
    uint64_t lost_reported_ns, gone_ns;
    struct segment_position *stored; /* of each segment seen so far: what is in the database */
    size_t stored_room;
    unsigned segments;
    uint64_t issued_lost; /* control records lost when it was reported what members issued */
    int open_calls;       /* calls entered and not left yet */
    uint32_t child_polls; /* as read last: ring_reader_child_polls */
    bool asked;           /* where its threads stand, and it has not answered yet */
    struct run_delay run_delay;
    uint64_t main_stack; /* where its main thread stood when it was asked last; 0 not known */
    bool main_stack_is_address;
    bool stopped;    /* as last reported (dormant.h) */
    bool said_exit;  /* it wrote notice_exit */
    bool said_abort; /* it was about to abort() when it was seen last */
    int exit_value;
    bool end_reported; /* notice_end is in the batch or stored */
};

/* Takes records into the batch, at most `quota`, progress as notices between them, by time, and
 * what else changed (losses, the end) as notices behind them. Returns how many records it took, or
 * -1 with err: the ring file is damaged, what was good is in the batch, and the reader is closed.
 */
int producer_pass(struct producer *producer, struct store *store, struct record_batch *batch,
                  int quota, uint64_t now_ns, struct error *err);

/* Writes the positions that the batch reached into the open transaction. Returns 0, or -1 with err.
 */
int producer_store_positions(struct producer *producer, struct store *store, struct error *err);

/* The database is another: all positions are stored again. */
void producer_forget_stored(struct producer *producer);
/* The batch is safely stored: gives the rings' room back. Returns 0, or -1 with err: the file is
 * damaged and the reader closed. */
int producer_stored(struct producer *producer, struct error *err);

/* Grows while the process makes calls or its GPU streams make progress, stored or not. */
uint64_t producer_steps(const struct producer *producer);

/* True while a call or a GPU stream of the process has begun something that is not done. */
bool producer_waits(const struct producer *producer);

/* Whether the process has asked for the end of any child since the last call of this. */
bool producer_polled(struct producer *producer);

void producer_free(struct producer *producer);

#endif
