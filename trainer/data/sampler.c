/* sampler.c: shuffles the data set and deals it out to the ranks. */
#include "trainer/data/sampler.h"

#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/random.h"

void sampler_open(struct sampler *sampler, size_t count, int rank, int ranks, uint64_t seed,
                  bool shuffle, bool drop_last)
{
    size_t round_up = drop_last ? 0 : (size_t)ranks - 1;
    *sampler = (struct sampler){.count = count,
                                .rank = rank,
                                .ranks = ranks,
                                .seed = seed,
                                .shuffle = shuffle,
                                .per_rank = (count + round_up) / (size_t)ranks,
                                .order = allocate(count, sizeof *sampler->order)};
    sampler_set_epoch(sampler, 0);
}

void sampler_close(struct sampler *sampler)
{
    free(sampler->order);
}

void sampler_set_epoch(struct sampler *sampler, int epoch)
{
    sampler->epoch = epoch;
    for (size_t i = 0; i < sampler->count; i++)
        sampler->order[i] = i;
    if (!sampler->shuffle)
        return;
    /* Fisher & Yates; the remainder's bias is below count / 2^64. */
    for (size_t i = sampler->count; i > 1; i--) {
        size_t j = random_bits(sampler->seed + ((uint64_t)epoch << 32), RANDOM_SHUFFLE, i) % i;
        size_t swapped = sampler->order[i - 1];
        sampler->order[i - 1] = sampler->order[j];
        sampler->order[j] = swapped;
    }
}

size_t sampler_index(const struct sampler *sampler, size_t place)
{
    size_t position = place * (size_t)sampler->ranks + (size_t)sampler->rank;
    return sampler->order[position % sampler->count];
}
