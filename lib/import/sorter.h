/* sorter.h: brings records of many files into the order of their time, in bounded memory.
 *
 * Records are taken in any order; those of one process must come with keys that do not fall, which
 * is how each keeps its own order. What does not fit into memory lies sorted in an unlinked
 * temporary file (TMPDIR, else beside the database). */
#ifndef DDPCHECK_SORTER_H
#define DDPCHECK_SORTER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/record.h"

struct sorter;

struct sorted {
    uint64_t key;
    uint32_t process, part; /* part: the caller's */
    struct record record;
};

/* `directory` is where the temporary file goes where TMPDIR is not set. NULL when memory is short.
 */
struct sorter *sorter_new(const char *directory);
void sorter_free(struct sorter *sorter);

/* Returns 0, or -1 with err. */
int sorter_add(struct sorter *sorter, const struct sorted *item, struct error *err);
/* Ends the adding. Returns 0, or -1 with err. */
int sorter_finish(struct sorter *sorter, struct error *err);
/* The next in order (equal keys: as they came), valid until the next call. 1, 0 at the end, -1 with
 * err. */
int sorter_next(struct sorter *sorter, const struct sorted **item, struct error *err);

#endif
