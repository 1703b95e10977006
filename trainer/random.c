/* random.c: random numbers from a seed, a stream and an index. */
#include "trainer/random.h"

#include <math.h>

/* The finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection that mixes all 64 bits. */
static uint64_t mix_counter(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t random_bits(uint64_t seed, enum random_stream stream, uint64_t index)
{
    return mix_counter(mix_counter(mix_counter(seed) + (uint64_t)stream) + index);
}

double random_uniform(uint64_t seed, enum random_stream stream, uint64_t index)
{
    return (double)(random_bits(seed, stream, index) >> 11) * 0x1p-53;
}

float random_normal(uint64_t seed, enum random_stream stream, uint64_t index)
{
    /* Box & Muller 1958; 1 - u keeps the logarithm's argument above zero. */
    double radius = sqrt(-2.0 * log(1.0 - random_uniform(seed, stream, 2 * index)));
    return (float)(radius * cos(2.0 * M_PI * random_uniform(seed, stream, 2 * index + 1)));
}
