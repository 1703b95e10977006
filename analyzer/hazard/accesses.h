/* accesses.h: which memory a record's work reads and writes.
 *
 * Operations: what their kind uses on this rank (signature.h, op_extent_of). Copies and memsets:
 * exactly what they say. Kernels: the addresses that they are given; how far they go from there is
 * not known, so one byte each. */
#ifndef DDPCHECK_ACCESSES_H
#define DDPCHECK_ACCESSES_H

#include "analyzer/hazard/flight.h"

struct use {
    struct stretch stretch;
    struct access access;
};

enum { USES_MAX = 6 };

/* Each fills in use[] and returns how many there are. A call in place is one write. */
uint32_t uses_of_operation(const struct record *record, int nranks, struct use use[USES_MAX]);
uint32_t uses_of_copy(const struct process *process, const struct record *record,
                      struct use use[USES_MAX]);
uint32_t uses_of_kernel(const struct record *record, struct use use[USES_MAX]);
/* Whether a row of the stretch meets [begin, end). */
bool stretch_meets(const struct stretch *stretch, uint64_t begin, uint64_t end);

#endif
