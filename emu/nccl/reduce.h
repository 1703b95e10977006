/* reduce.h: arithmetic on arrays of any NCCL type. Small floats are rounded after every step, as
 * they are when a ring passes partial results on. */
#ifndef DDPCHECK_EMU_NCCL_REDUCE_H
#define DDPCHECK_EMU_NCCL_REDUCE_H

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How two elements become one. */
enum combine { COMBINE_SUM, COMBINE_PROD, COMBINE_MAX, COMBINE_MIN, COMBINES };

/* A reduction as one rank does it. Scale and divide are this rank's own affair; ranks must agree
 * on `op` only. */
struct reduction {
    int op; /* ncclSum to ncclAvg, REDUCTION_PREMUL */
    enum combine combine;
    bool scales;               /* inputs are multiplied by `scalar` first */
    int divisor;               /* results are divided by it; 0: they are not */
    uint64_t scalar;           /* one element's bits, in its first bytes */
    const void *device_scalar; /* read when the operation runs, instead of `scalar` */
};

enum { REDUCTION_PREMUL = ncclNumOps };

/* A built-in operator among `ranks` ranks. */
struct reduction reduction_builtin(ncclRedOp_t op, ncclDataType_t type, int ranks);

void reduce_combine(enum combine how, ncclDataType_t type, void *into, const void *from,
                    size_t count);
void reduce_scale(ncclDataType_t type, const void *scalar, void *data, size_t count);
void reduce_divide(ncclDataType_t type, int divisor, void *data, size_t count);

#endif
