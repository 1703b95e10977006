/* emit.h: appends records to the calling thread's rings, and makes the shim's own notices. */
#ifndef DDPCHECK_EMIT_H
#define DDPCHECK_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "interpose/real/gpu.h"
#include "interpose/shim/thread.h"

extern const uint8_t emit_class_of[API_COUNT]; /* enum api_class */

static inline enum api_class emit_class(uint16_t api)
{
    return emit_class_of[api];
}

/* The ring of a call's records: bulk for copies, kernels and ranges, control for all else. */
static inline int emit_ring(uint16_t api)
{
    switch (emit_class(api)) {
    case CLASS_COPY:
    case CLASS_LAUNCH:
    case CLASS_RANGE:
        return RING_BULK;
    default:
        return RING_CONTROL;
    }
}

/* Fills in who did what (thread, device, call). */
static inline void emit_name(struct shim_thread *thread, struct record *record, uint16_t api,
                             enum record_phase phase)
{
    record->api = api;
    record->phase = (uint8_t)phase;
    record->thread = thread->id;
    record->device = (int16_t)gpu_thread_device(thread);
}

/* Fills in time and serial of now. */
static inline void emit_stamp(struct record *record)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    record->serial = atomic_fetch_add_explicit(&shim.file->serial, 1, memory_order_relaxed) + 1;
}

/* Appends. Returns false if the record was lost (it was counted) or may yet be overwritten. */
bool emit(struct shim_thread *thread, const struct record *record, int ring);

/* A record that was kept as emit_describe made it, emitted now. */
void emit_late(struct shim_thread *thread, struct record *record);

/* A notice of the shim: fills in what every record has; the caller has filled in the payload.
 * Returns false if it was lost. */
bool emit_notice(struct shim_thread *thread, struct record *record, enum api api);

/* The same with another device than the thread's current one. */
bool emit_notice_on(struct shim_thread *thread, struct record *record, enum api api,
                    int32_t device);

/* The member's collectives below its next number were emitted, or lost. */
void emit_issued(struct local_member *member);

/* Emits a string once. Returns its id. */
uint64_t emit_string(struct shim_thread *thread, const char *text, uint64_t bytes);

/* The same for what a program says of an error: secrets in it are masked first, in place. */
uint64_t emit_said(struct shim_thread *thread, char *text, uint64_t bytes);

/* In the child of a fork. */
void emit_forked(void);

#endif
