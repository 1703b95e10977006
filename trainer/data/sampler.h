/* sampler.h: deals out a data set to the ranks, as DistributedSampler does: all ranks shuffle the
 * whole set alike (by seed and epoch), then rank r takes places r, r + ranks, r + 2 ranks, ... All
 * ranks get equally many: what is left over is dropped, or the beginning is repeated. */
#ifndef DDPTRAIN_SAMPLER_H
#define DDPTRAIN_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler {
    size_t count; /* of images in the data set */
    int rank, ranks;
    uint64_t seed;
    int epoch;
    bool shuffle;
    size_t per_rank; /* places of each rank in an epoch */
    size_t *order;   /* of the whole set, in this epoch */
};

void sampler_open(struct sampler *sampler, size_t count, int rank, int ranks, uint64_t seed,
                  bool shuffle, bool drop_last);
void sampler_close(struct sampler *sampler);
/* Shuffles for an epoch. Forgotten, every epoch has the order of the first. */
void sampler_set_epoch(struct sampler *sampler, int epoch);
/* The image at this rank's place `place` < per_rank. */
size_t sampler_index(const struct sampler *sampler, size_t place);

#endif
