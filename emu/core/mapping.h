/* mapping.h: virtual memory management (cuMemMap): reserved addresses, device memory that has none
 * yet, and the mapping of the one to the other. Thread-safe. Errors are those of CUDA. */
#ifndef DDPCHECK_EMU_MAPPING_H
#define DDPCHECK_EMU_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_range;

enum { EMU_MAPPING_GRANULE = 2 << 20 };

/* Device memory that cuMemCreate made. It lives until it is released and mapped nowhere. */
struct emu_physical;

/* Reserves addresses, at `wanted` if these are free. bytes is a multiple of the granule. */
int emu_mapping_reserve(size_t bytes, size_t alignment, uintptr_t wanted, uintptr_t *base);
/* Ends a reservation in which nothing is mapped. */
int emu_mapping_unreserve(uintptr_t base, size_t bytes);
/* Whether the address is in a reservation. */
bool emu_mapping_reserves(uintptr_t address);

int emu_physical_new(int device, size_t bytes, struct emu_physical **physical);
int emu_physical_release(struct emu_physical *physical);
/* One reference more, for the mapping around `pointer`. */
int emu_physical_retain(const void *pointer, struct emu_physical **physical);
/* -1: it is none. */
int emu_physical_device(const struct emu_physical *physical);

/* A file that stands for the memory, for another process, and what that process makes of it. The
 * memory goes when the one that made it lets go of it. */
int emu_physical_export(const struct emu_physical *physical, int *file);
int emu_physical_import(int file, struct emu_physical **physical);

/* Maps memory from `offset` on. No device can touch it before emu_mapping_allow. */
int emu_mapping_map(uintptr_t base, size_t bytes, size_t offset, struct emu_physical *physical);
/* Once the devices are done, ends all mappings of [base, base + bytes). None may reach beyond it.
 */
int emu_mapping_unmap(uintptr_t base, size_t bytes);
/* The table of ranges (memory.c) lets go of a mapping. */
void emu_mapping_close(const struct emu_range *range);

#endif
