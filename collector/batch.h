/* batch.h: what one pass of the collector took from the rings, until it is safely stored.
 *
 * Bounded: BATCH_RECORDS records of 128 bytes and their process numbers, about 1.1 MB, and the
 * findings that these records gave rise to. A batch can be written again after a failure. */
#ifndef DDPCHECK_BATCH_H
#define DDPCHECK_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/finding/finding.h"
#include "lib/base/error.h"
#include "lib/trace/record.h"
#include "lib/trace/store.h"

enum { BATCH_RECORDS = 8192 };

struct record_batch {
    struct record record[BATCH_RECORDS];
    int process[BATCH_RECORDS];
    int count;
    struct batch_finding *findings; /* newest state of each, in order of id */
};

/* A finding that waits to be stored; a copy. */
struct batch_finding {
    struct finding finding;
    struct batch_finding *next;
};

/* Returns NULL when memory is short. */
struct record_batch *batch_new(void);
void batch_free(struct record_batch *batch);
void batch_clear(struct record_batch *batch);

static inline int batch_room(const struct record_batch *batch)
{
    return BATCH_RECORDS - batch->count;
}

/* Adds one record if there is room. */
bool batch_add(struct record_batch *batch, int process, const struct record *record);

/* Adds a finding, or replaces its older state. Returns 0, or -1 when memory is short. */
int batch_add_finding(struct record_batch *batch, const struct finding *finding);

/* Writes all records and findings into the open transaction. Returns 0, or -1 with err. */
int batch_write(const struct record_batch *batch, struct store *store, struct error *err);

#endif
