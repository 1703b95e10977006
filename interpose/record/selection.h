/* selection.h: which kernels and copies are told (DDPCHECK_CUDA, ddpcheck run --cuda).
 *
 * By default only those that touch memory which NCCL uses; what orders work (streams, events,
 * waits, graphs, allocations) is told always. An access to other memory is kept here instead, in a
 * table, and told late if NCCL then uses that memory after all. Why no finding is lost, and where a
 * table of a fixed size may lose one: docs/decisions.md, "Which work the shim records".
 *
 * No locks: pages are bits, an entry of the table belongs to whoever takes it. */
#ifndef DDPCHECK_SELECTION_H
#define DDPCHECK_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/calls/calls.h"

struct thread;

enum selection { SELECT_USED, SELECT_ALL, SELECT_NONE };

/* As DDPCHECK_CUDA says. */
enum selection selection_wanted(void);

/* What an access touches; a kernel's pointer stands for its first byte. */
struct touch {
    uint64_t begin, end;
    uint64_t base; /* of the allocation */
    bool written;
};

/* To be asked after the real call, with the record as emit_point would take it but for what is the
 * same in all. Returns false if the record is to be told now, as it is. */
bool selection_keeps(struct call *call, struct record *record, const void *stream,
                     const struct touch *touch, int count);

/* NCCL is about to use the memory. Tells what was kept about it. */
void selection_used(struct thread *thread, uint64_t begin, uint64_t end);
/* The memory was given out anew: what was kept about it is history, and NCCL does not use it yet.
 */
void selection_forget(uint64_t begin, uint64_t end);
/* A stream came to be known, with its flags. */
void selection_stream(struct thread *thread, uint64_t stream, unsigned flags);
void selection_stream_gone(uint64_t stream);

/* In the child of a fork. */
void selection_forked(void);

#endif
