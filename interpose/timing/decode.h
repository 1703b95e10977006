/* decode.h: what ddpcheck takes from a record of CUPTI's.
 *
 * The structs of a kind only grow at their end: CUpti_ActivityKernel4 (CUDA 9.0) to Kernel10 (CUDA
 * 13.0) begin alike, as do those of copies and memory sets (cupti_activity.h and
 * cupti_activity_deprecated.h of each version; tests/interpose/test_timing.c compares them). */
#ifndef DDPCHECK_TIMING_DECODE_H
#define DDPCHECK_TIMING_DECODE_H

#include <stdbool.h>
#include <stdint.h>

enum timed_what {
    TIMED_KERNEL,
    TIMED_COPY,   /* a copy or a memory set */
    TIMED_COMPUTE /* a kernel that is not NCCL's: its name is not needed any more */
};

/* A piece of work on a GPU, by CUPTI's clock. */
struct timed_work {
    enum timed_what what;
    uint64_t begin_ns, end_ns;
    uint64_t amount;      /* of a kernel its threads, of a copy its bytes */
    uint32_t correlation; /* of the API call that launched it */
    int16_t device;
    const char *name; /* of a copy it is static, else it belongs to CUPTI */
};

/* Returns false for records of other kinds, and for work of which CUPTI has no times. */
bool timing_decode(const void *record, struct timed_work *work);

/* Whether a kernel of this (mangled) name is NCCL's. */
bool timing_is_nccl(const char *name);

#endif
