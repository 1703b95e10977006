/* limits.h: what one launch, and one multiprocessor, of the virtual device holds: numbers of
 * compute capability 9.0 (CUDA programming guide, "Compute Capabilities"). */
#ifndef DDPCHECK_EMU_LIMITS_H
#define DDPCHECK_EMU_LIMITS_H

#include <limits.h>
#include <stddef.h>

enum {
    THREADS_PER_BLOCK = 1024,
    THREADS_PER_MULTIPROCESSOR = 2048,
    BLOCKS_PER_MULTIPROCESSOR = 32,
    SHARED_PER_BLOCK = 48 << 10,
    SHARED_OPT_IN = 227 << 10,
    SHARED_PER_MULTIPROCESSOR = 228 << 10,
    REGISTERS = 32
};

/* Blocks of this shape that one multiprocessor runs at once. threads > 0. */
static inline int limits_blocks(int threads, size_t shared)
{
    int by_threads = threads > THREADS_PER_BLOCK ? 0 : THREADS_PER_MULTIPROCESSOR / threads;
    int by_shared = shared ? (int)(SHARED_PER_MULTIPROCESSOR / shared) : INT_MAX;
    int blocks = by_threads < by_shared ? by_threads : by_shared;

    return blocks < BLOCKS_PER_MULTIPROCESSOR ? blocks : BLOCKS_PER_MULTIPROCESSOR;
}

#endif
