/* pool.h: memory pools of cudaMallocAsync: attributes, access rights and accounts. The memory
 * itself comes from the device's one allocator; a pool keeps none back. Thread-safe. */
#ifndef DDPCHECK_EMU_POOL_H
#define DDPCHECK_EMU_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct emu_stream;

enum { EMU_POOL_ATTRIBUTES = 16 };

struct emu_pool {
    int device;
    atomic_uint_fast64_t access;          /* bit d: device d may touch the memory */
    atomic_uint_fast64_t used, used_high; /* bytes */
    atomic_uint_fast64_t
        attributes[EMU_POOL_ATTRIBUTES]; /* those that are only kept, by cudaMemPoolAttr */
};

/* NULL: no memory. Owned by the caller, known as a handle. Memory that is still allocated from a
 * pool refers to it, so emu_pool_free only ends the handle; the few bytes stay. */
struct emu_pool *emu_pool_new(int device);
int emu_pool_free(struct emu_pool *pool);
bool emu_pool_allows(const struct emu_pool *pool, int device);
/* Books bytes taken (or given back, if negative); NULL is allowed. */
void emu_pool_count(struct emu_pool *pool, long bytes);

/* cudaMallocAsync and cudaFreeAsync. Return a cudaError_t. */
int emu_pool_allocate(struct emu_pool *pool, struct emu_stream *stream, unsigned long bytes,
                      void **pointer);
int emu_pool_release(struct emu_stream *stream, void *pointer);

#endif
