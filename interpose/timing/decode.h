/* decode.h: what ddpcheck takes from a record of CUPTI's.
 *
 * The structs of a kind only grow at their end: CUpti_ActivityKernel4 (CUDA 9.0) to Kernel13 (CUDA
 * 13.5) begin alike, as do those of copies and memory sets (cupti_activity.h and
 * cupti_activity_deprecated.h of each version; tests/interpose/test_timing.c compares those that
 * the build's headers have). So a record of any later version is read by the first struct of its
 * kind, if it has as many bytes. */
#ifndef DDPCHECK_TIMING_DECODE_H
#define DDPCHECK_TIMING_DECODE_H

#include <stdbool.h>
#include <stddef.h>
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

enum timed_record {
    RECORD_OF_WORK,
    RECORD_OF_OTHER, /* of another kind, or of work that CUPTI has no times for */
    RECORD_TOO_SHORT /* for the struct of its kind: its layout is not known */
};

/* Reads a record of `bytes` bytes; `work` is filled in for RECORD_OF_WORK only. */
enum timed_record timing_decode(const void *record, size_t bytes, struct timed_work *work);

/* Whether a kernel of this (mangled) name is NCCL's. */
bool timing_is_nccl(const char *name);

#endif
