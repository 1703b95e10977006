/* staging.h: reducing a copy of a bucket, so that the gradients keep their values until the
 * averages are there (gradient_as_bucket_view=False in DistributedDataParallel).
 *
 * The copy lives as long as one AllReduce, in stream-ordered memory. It is made on the compute
 * stream, behind the kernels that fill the bucket; the AllReduce and the copy back follow on the
 * communicator's stream. */
#ifndef DDPTRAIN_STAGING_H
#define DDPTRAIN_STAGING_H

#include "trainer/communicator.h"
#include "trainer/tensor.h"

/* Allocates a copy of `gradients` on the compute stream. */
float *staging_open(const struct tensor *gradients);
/* Copies it back on the communicator's stream, and gives its memory back at the place that
 * `last_user` has reached: that must come after the copy back. */
void staging_close(float *copy, struct tensor *gradients, const struct communicator *communicator,
                   cudaStream_t last_user);

#endif
