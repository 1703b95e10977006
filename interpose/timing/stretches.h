/* stretches.h: turns work on GPUs into records of the trace that are few, whatever there was.
 *
 * Work of a device between operations that follows closely is one stretch (notice_activity with
 * count and busy_ns); an operation ends a stretch. Names are summed up apart (notice_kernels). */
#ifndef DDPCHECK_STRETCHES_H
#define DDPCHECK_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/trace/record.h"

/* Work, and whether it belongs to an operation. Times by the clock of records. */
struct placed_work {
    uint64_t begin_ns, end_ns;
    uint64_t launch; /* of an operation's; else 0 */
    uint32_t slot;
    int16_t device;
};

/* Fills in api, device and payload of the records, in the order in which they end; work is
 * reordered. Returns how many they are: at most `room`, which is at least the number of operations
 * and devices; stretches become longer until they fit. */
size_t stretches_record(struct placed_work *work, size_t count, struct record *record, size_t room);

#endif
