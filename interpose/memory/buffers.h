/* buffers.h: which allocation a pointer lies in; emitted (notice_buffer) once per allocation until
 * it is freed. */
#ifndef DDPCHECK_BUFFERS_H
#define DDPCHECK_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/thread.h"

/* Emits the pointer's allocation. NULL has none. */
void buffers_record(struct shim_thread *thread, const void *pointer);

/* The same for something that may be a pointer: emits it and returns true only if it lies in memory
 * that CUDA knows. */
bool buffers_record_if_known(struct shim_thread *thread, uint64_t pointer);

/* The allocation that a pointer lies in; emits nothing. Returns whether it is memory that CUDA
 * knows. */
struct buffer_fact {
    uint64_t base;
    int32_t device;
    uint32_t type;
};
bool buffers_find(struct shim_thread *thread, uint64_t pointer, struct buffer_fact *fact);

/* The allocation at `base` (0: all, or who knows which) was freed, or made: what is known of
 * pointers is stale. */
void buffers_forget(uint64_t base);

/* In the child of a fork. */
void buffers_forked(void);

#endif
