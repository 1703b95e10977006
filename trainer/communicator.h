/* communicator.h: a NCCL communicator with the stream that its collectives run on.
 *
 * The job has one for control (barriers, averages, agreement) and one for each model's reducer, so
 * that reductions of two models can never be mistaken for one another. Collectives are enqueued and
 * return at once; order with the compute stream is made by events, in both directions, and never by
 * blocking the host, except in the functions that say so. */
#ifndef DDPTRAIN_COMMUNICATOR_H
#define DDPTRAIN_COMMUNICATOR_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/device.h"
#include "trainer/watchdog.h"

struct communicator {
    const char *name;
    ncclComm_t handle;
    cudaStream_t stream;
    cudaEvent_t mark; /* for ordering this stream and the compute stream */
    int rank, size;
    struct device *device;
    struct watchdog *watchdog; /* NULL: none */
    void *scratch;             /* device memory of the small host-value collectives */
};

enum { COMMUNICATOR_SCRATCH_BYTES = 4096 };

/* Joins the communicator that `id` names as `rank` of `size`; blocks until all ranks have come. */
void communicator_connect(struct communicator *communicator, const char *name,
                          struct device *device, int rank, int size, const ncclUniqueId *id,
                          struct watchdog *watchdog);
/* Makes a communicator of the same ranks, collectively. `name` must live as long as the result. */
void communicator_split(const struct communicator *parent, struct communicator *child,
                        const char *name);
/* Waits for the communicator's own collectives, then destroys it. */
void communicator_close(struct communicator *communicator);

/* What the communicator's stream does next waits for all that the compute stream was given so far.
 */
void communicator_wait_for_compute(struct communicator *communicator);
/* What the compute stream does next waits for all that the communicator's stream was given so far.
 */
void compute_wait_for_communicator(struct communicator *communicator);

/* Overwrites `data` (floats in device memory) on all ranks with root's, ordered with the compute
 * stream on both sides: for parameters and buffers. */
void communicator_broadcast(struct communicator *communicator, float *data, size_t count, int root,
                            const char *what);

/* The functions below block the host until the result is there. */

/* Returns once all ranks have called it. */
void communicator_barrier(struct communicator *communicator);
/* Replaces up to 8 host values by their sums over the ranks. */
void communicator_sum(struct communicator *communicator, double *values, int count);
/* The smallest and the largest value that a rank gave. */
int communicator_minimum(struct communicator *communicator, int value);
int communicator_maximum(struct communicator *communicator, int value);
/* Sets a flag in device memory on all ranks if it is set on any, ordered with the compute stream on
 * both sides. Returns whether it is set. */
bool communicator_agree_on_flag(struct communicator *communicator, int32_t *flag);
/* Every rank's value: values[rank], `size` of them, size <= 512. */
void communicator_gather(struct communicator *communicator, uint64_t value, uint64_t *values);
/* Overwrites the values, at most 1024, with rank 0's. */
void communicator_share_integers(struct communicator *communicator, int32_t *values, int count);

#endif
