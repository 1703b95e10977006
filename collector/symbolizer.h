/* symbolizer.h: gives the addresses that a trace needs their names, beside the collector's real
 * work.
 *
 * Addresses of NCCL calls, host waits and findings are queued as their records pass and looked up a
 * few milliseconds at a time. One lookup in a large object can take longer; the rings hold what
 * comes meanwhile. */
#ifndef DDPCHECK_SYMBOLIZER_H
#define DDPCHECK_SYMBOLIZER_H

#include <stdint.h>

#include "lib/trace/record.h"
#include "lib/trace/store.h"

struct symbolizer;

/* Reads modules from the database at `path` (not opened before the first lookup). NULL when memory
 * is short. */
struct symbolizer *symbolizer_new(const char *path);
void symbolizer_free(struct symbolizer *symbolizer);

/* The database as it is now, for looking stacks up; NULL if it can't be read. The symbolizer's. */
struct trace *symbolizer_trace(struct symbolizer *symbolizer);

/* Queues the addresses in a record, each once. */
void symbolizer_note(struct symbolizer *symbolizer, int process, const struct record *record);

/* Looks up queued addresses for about `budget_ns` and stores their names in a transaction of its
 * own. What can't be looked up or stored is left out: readers look it up themselves. Returns how
 * many are left. */
int symbolizer_work(struct symbolizer *symbolizer, struct store *store, uint64_t budget_ns);

#endif
