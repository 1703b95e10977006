/* hash.h: adds a word to a hash, for tables in memory; not for what is stored. */
#ifndef DDPCHECK_BASE_HASH_H
#define DDPCHECK_BASE_HASH_H

#include <stdint.h>

static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

#endif
