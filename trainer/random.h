/* random.h: random numbers by counter: the number at (seed, stream, index) is always the same,
 * whichever rank asks and in whatever order. So 1 rank and 4 ranks draw the same weights, images
 * and noise, and a resumed run has no generator state to restore. */
#ifndef DDPTRAIN_RANDOM_H
#define DDPTRAIN_RANDOM_H

#include <stdint.h>

/* What the numbers are for; streams never share a number. */
enum random_stream {
    RANDOM_WEIGHTS,
    RANDOM_IMAGES,
    RANDOM_NOISE,
    RANDOM_SHUFFLE,
    RANDOM_SAMPLES,
    RANDOM_DIRECTIONS
};

uint64_t random_bits(uint64_t seed, enum random_stream stream, uint64_t index);
/* Uniform in [0, 1). */
double random_uniform(uint64_t seed, enum random_stream stream, uint64_t index);
/* Standard normal. Uses the bits of indices 2 index and 2 index + 1. */
float random_normal(uint64_t seed, enum random_stream stream, uint64_t index);

#endif
