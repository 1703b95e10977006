/* noise.h: the vectors that a generator makes images of: normally distributed numbers, by the place
 * of the image in the training (random.h), so that N ranks together draw what one rank would. */
#ifndef DDPTRAIN_NOISE_H
#define DDPTRAIN_NOISE_H

#include "trainer/random.h"
#include "trainer/tensor.h"

struct noise {
    uint64_t seed;
    int latent;  /* length of a vector */
    int room;    /* vectors that fit in */
    float *host; /* pinned host memory */
};

/* For up to `room` vectors at once. */
void noise_open(struct noise *noise, uint64_t seed, int latent, int room);
void noise_close(struct noise *noise);

/* The vectors of n images, the first at place `first`, the others at steps of `stride`:
 * [n][latent][1][1] on the device's tape. The copy is enqueued on the compute stream, which must
 * have been waited for before the next call. */
struct tensor *noise_draw(struct noise *noise, struct device *device, enum random_stream stream,
                          int n, uint64_t first, uint64_t stride);

#endif
