/* buffers.h: telling the collector which allocation a pointer lies in (notice_buffer), once per
 * allocation until it is freed. */
#ifndef DDPCHECK_BUFFERS_H
#define DDPCHECK_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/record/thread.h"

/* Tells of the pointer's allocation. NULL is nothing. */
void buffers_tell(struct thread *thread, const void *pointer);

/* The same for something that may be a pointer: tells of it and returns true only if it lies in
 * memory that CUDA knows. */
bool buffers_tell_if_known(struct thread *thread, uint64_t pointer);

/* The allocation that a pointer lies in, untold. Returns whether it is memory that CUDA knows. */
struct buffer_fact {
    uint64_t base;
    int32_t device;
    uint32_t type;
};
bool buffers_look(struct thread *thread, uint64_t pointer, struct buffer_fact *fact);

/* The allocation at `base` (0: all, or who knows which) was freed, or made: what is known of
 * pointers is stale. */
void buffers_forget(uint64_t base);

#endif
