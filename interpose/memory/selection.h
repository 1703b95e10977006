/* selection.h: which kernels and copies are recorded (DDPCHECK_CUDA, ddpcheck run --cuda).
 *
 * By default only those that touch memory which NCCL uses; what orders work (streams, events,
 * waits, graphs, allocations) is always recorded. An access to other memory is kept here instead,
 * in a table, and emitted late if NCCL then uses that memory after all. Why no finding is lost, and
 * where a table of a fixed size may lose one: docs/decisions/interpose.md, "Which work the shim
 * records".
 *
 * No locks: pages are bits, an entry of the table belongs to the thread that claims it. */
#ifndef DDPCHECK_SELECTION_H
#define DDPCHECK_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/record/call.h"

/* Reads DDPCHECK_CUDA into shim.selection. Returns true. */
bool selection_start(void);

/* What an access touches; a kernel's pointer stands for its first byte. */
struct touch {
    uint64_t begin, end;
    uint64_t base; /* of the allocation */
    bool written;
};

/* To be called after the real call, with the record as emit_point would take it but for what is the
 * same in all. Returns false if the record has to be emitted now, as it is. */
bool selection_keeps(struct recorded_call *call, struct record *record, const void *stream,
                     const struct touch *touch, int count);

/* NCCL is about to use the memory. Emits what was kept about it. */
void selection_used(struct shim_thread *thread, uint64_t begin, uint64_t end);
/* The memory was given out anew: what was kept about it is history, and NCCL does not use it yet.
 * `begin` 0: the allocation failed.
 */
void selection_forget(uint64_t begin, uint64_t end);

/* In the child of a fork. */
void selection_forked(void);

#endif
