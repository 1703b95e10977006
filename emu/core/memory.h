/* memory.h: who owns which addresses. One table of ranges, sorted by address, for device memory,
 * pinned and managed memory. Thread-safe.
 *
 * Work that touches memory holds it (emu_memory_hold) so that a free on another device, which
 * does not wait for this one, can't pull the pages away under it. */
#ifndef DDPCHECK_EMU_MEMORY_H
#define DDPCHECK_EMU_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_physical;
struct emu_pool;

enum emu_memory_kind {
    EMU_MEMORY_DEVICE,
    EMU_MEMORY_PINNED,
    EMU_MEMORY_REGISTERED,
    EMU_MEMORY_MANAGED
};

struct emu_range {
    uintptr_t base;
    size_t bytes;  /* as asked for */
    size_t mapped; /* whole pages */
    int device;    /* owner; of pinned and managed memory the device current at allocation */
    enum emu_memory_kind kind;
    unsigned flags;                /* cudaHostAlloc, cudaHostRegister, cudaMallocManaged */
    uint64_t id;                   /* never given twice */
    struct emu_pool *pool;         /* whose access rights hold, NULL: cudaMalloc */
    struct emu_physical *physical; /* that is mapped here (mapping.h), else NULL */
    uint64_t access;               /* of a mapping: bit d: device d may touch it */
    bool imported;                 /* another process's device memory (ipc.h) */
    int shared;                    /* the memory file that it was moved into, and 1; 0: none */
    struct emu_range **piece;      /* of a hold over several mappings: those; else NULL */
    size_t pieces;
    atomic_int holders; /* 1 for the table */
};

/* Allocates device memory. Returns 0, cudaErrorMemoryAllocation. bytes > 0. */
int emu_memory_allocate(int device, size_t bytes, struct emu_pool *pool, void **pointer);
/* Allocates pinned or managed host memory. */
int emu_memory_allocate_host(int device, size_t bytes, enum emu_memory_kind kind, unsigned flags,
                             void **pointer);
/* Registers the program's own memory. Returns 0 or cudaErrorHostMemoryAlreadyRegistered. */
int emu_memory_register(int device, void *pointer, size_t bytes, unsigned flags);
/* Frees what starts at `pointer` and is of a kind in `kinds` (bits 1 << kind). Returns 0 or
 * cudaErrorInvalidValue. */
int emu_memory_free(void *pointer, unsigned kinds);
/* The same after everything on the memory's device is done (pool.c). NULL is allowed. */
int emu_memory_free_when_idle(void *pointer, unsigned kinds);
/* Makes another process's memory known, which `model` describes, and ends that. Return 0,
 * cudaErrorMemoryAllocation, cudaErrorInvalidValue. */
int emu_memory_import(const struct emu_range *model);
int emu_memory_unimport(void *pointer);
/* Forgets all of a device's memory, and what was registered for it; its pages go only if `unmap`
 * (nothing can be using them). */
void emu_memory_drop_device(int device, bool unmap);

/* Makes a mapping known, which `model` describes; pages are the caller's affair. Returns 0,
 * cudaErrorInvalidValue (something is mapped there), cudaErrorMemoryAllocation. */
int emu_memory_map(const struct emu_range *model);
/* Ends the mappings that fill these addresses, and their pages. Returns 0, cudaErrorInvalidValue
 * (there are none, or one is cut). */
int emu_memory_unmap(uintptr_t base, size_t bytes);
/* Sets whether the device may touch the mappings that fill these addresses. Fails as unmap does. */
int emu_memory_allow(uintptr_t base, size_t bytes, int device, bool allowed);
/* Whether something is mapped in there. */
bool emu_memory_maps(uintptr_t base, size_t bytes);
/* Takes bytes of the device's budget; false: fewer are left. The second gives them back. */
bool emu_memory_charge(int device, size_t bytes);
void emu_memory_refund(int device, size_t bytes);

/* Copies what is known of the range around `pointer`. False if there is none; then *freed_device,
 * if not NULL, is the device whose address space it lies in (freed, or past an end), else -1. */
bool emu_memory_look_up(const void *pointer, struct emu_range *range, int *freed_device);
/* The bytes from there to the end of the range, and of mappings that follow without a gap. */
size_t emu_memory_bytes_from(const void *pointer);
/* Checks that `device` may touch [pointer, pointer+bytes) and holds the range until released, or
 * all mappings that it reaches over. *range is NULL for pageable host memory, which is refused
 * unless `pageable`. Returns 0, cudaErrorIllegalAddress, cudaErrorMemoryAllocation. A negative
 * device may touch everything (a copy staged through the host). */
int emu_memory_hold(int device, const void *pointer, size_t bytes, bool pageable,
                    struct emu_range **range);
/* Ends a hold; NULL is allowed. */
void emu_memory_release(struct emu_range *range);

/* Whether any of it is mapped from a file that a driver can't pin (memory_access.c). */
bool emu_file_backs(const void *pointer, size_t bytes);

#endif
