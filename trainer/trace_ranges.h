/* trace_ranges.h: names what the host is doing, for profilers and for ddpcheck (NVTX 3, header only: without
 * a tool these calls cost a few nanoseconds). Ranges nest; each begin needs its end. */
#ifndef DDPTRAIN_TRACE_RANGES_H
#define DDPTRAIN_TRACE_RANGES_H

/* Opens the range "iteration N". */
void range_begin_iteration(int iteration);
/* Opens the range "MODEL PHASE", for example "generator backward". */
void range_begin(const char *model, const char *phase);
/* Opens the range "MODEL reduce bucket K". */
void range_begin_bucket(const char *model, int bucket);
/* Closes the range opened last. */
void range_end(void);

#endif
