/* memory.h: which device the memory at an address belongs to, and how far its allocation reaches.
 *
 * Learned from notice_buffer (certain) and the allocation calls; a sorted list of intervals. */
#ifndef DDPCHECK_MEMORY_H
#define DDPCHECK_MEMORY_H

#include "analyzer/engine.h"

/* notice_buffer, MEMORY and freeing WAIT records. ENGINE_*. */
int memory_notice(struct event *event);
int memory_feed(struct event *event);
/* The pointer was freed by a call of `api` at the site. ENGINE_*. */
int memory_release(struct process *process, uint64_t pointer, const struct site *site,
                   uint16_t api);
void memory_free(struct process *process);
/* Host memory that CUDA does not know: an allocation of one byte stands for it. */
static inline bool memory_is_pageable(const struct allocation *allocation)
{
    return allocation->type == MEMORY_HOST_PAGEABLE || allocation->type == MEMORY_HOST_SHARED;
}
/* The allocation around the address; NULL if not known. Valid until the next change. */
const struct allocation *memory_find(const struct process *process, uint64_t pointer);
/* Up to where memory follows on the mapping `allocation` without a gap, if that is below `wanted`.
 */
uint64_t memory_mapped_end(const struct process *process, const struct allocation *allocation,
                           uint64_t wanted);
/* cudaDeviceEnablePeerAccess, cudaDeviceDisablePeerAccess. ENGINE_*. */
int memory_peer_access(struct event *event);
bool memory_can_access(const struct process *process, int from, int to);

#endif
