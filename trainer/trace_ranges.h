/* trace_ranges.h: names what the host is doing, for profilers and for ddpcheck (NVTX 3, header
 * only: without a tool these calls cost a few nanoseconds). Ranges nest; each begin needs its end.
 */
#ifndef DDPTRAIN_TRACE_RANGES_H
#define DDPTRAIN_TRACE_RANGES_H

#include <stdint.h>

/* Opens the range "iteration N". */
void range_begin_iteration(int iteration);
/* Opens the range "micro_step K": one of the passes whose gradients are accumulated. */
void range_begin_micro_step(int micro);
/* Opens the range "MODEL PHASE", for example "generator backward". */
void range_begin(const char *model, const char *phase);
/* Opens the range "MODEL reduce bucket K". */
void range_begin_bucket(const char *model, int bucket);
/* Closes the range opened last. */
void range_end(void);

/* What becomes of a tensor that backward needs, as ddpcheck reads it (docs/nvtx.md). Cheap without
 * a tool. `tensor` only names it. */
void mark_saved(const void *tensor, uint32_t version, const char *producer, const char *operation);
void mark_modified(const void *tensor, uint32_t version);
void mark_used(const void *tensor, uint32_t version, uint32_t saved, const char *producer,
               const char *operation);

#endif
