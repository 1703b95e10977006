/* emit.h: making records and appending them to the calling thread's rings. */
#ifndef DDPCHECK_EMIT_H
#define DDPCHECK_EMIT_H

#include <stdint.h>

#include "interpose/calls/calls.h"
#include "interpose/record/thread.h"

/* The rest of call_begin. */
bool call_begin_active(struct call *call, bool wakes);
void call_end(struct call *call);

/* Begins recording a call. Returns false if it has to pass through: the shim sleeps or is off, or
 * this is a call from within another recorded call. `wakes`: this call wakes a sleeping shim. On
 * true, call_end has to follow. */
static inline bool call_begin(struct call *call, enum api api, bool wakes, bool per_thread,
                              const void *site, const void *frame)
{
    uint32_t state = atomic_load_explicit(&shim.state, memory_order_acquire);
    if (state != SHIM_ACTIVE && (!wakes || state == SHIM_OFF))
        return false;
    if (thread_self.inside)
        return false;
    *call = (struct call){.api = (uint16_t)api,
                          .per_thread = per_thread,
                          .site = site,
                          .frame = frame,
                          .slot = RECORD_NO_SLOT};
    return call_begin_active(call, wakes);
}

/* The ring of a call's records: bulk for copies, kernels and ranges, control for all else. */
int emit_ring(uint16_t api);

/* Fills in what every record has, with time and serial of now. `stream` as the call was given it.
 * The call's stack is taken (and the collector told of it) first. */
void emit_prepare(struct call *call, struct record *record, enum record_phase phase,
                  const void *stream);

/* The part of it that does not depend on when the record is told: who did what, on which stream. */
void emit_describe(struct call *call, struct record *record, enum record_phase phase,
                   const void *stream);
/* A record that was kept as emit_describe made it, told now. */
void emit_late(struct thread *thread, struct record *record);
enum api_class emit_class(uint16_t api);

/* Appends. Returns false if the record was lost (it was counted). */
bool emit(struct thread *thread, const struct record *record, int ring);

/* A notice of the shim: fills in what every record has; the caller has filled in the payload.
 * Returns false if it was lost. */
bool emit_notice(struct thread *thread, struct record *record, enum api api);

/* The same with another device than the thread's current one. */
bool emit_notice_on(struct thread *thread, struct record *record, enum api api, int32_t device);

/* Tells the collector of a string once. Returns its id. */
uint64_t emit_string(struct thread *thread, const char *text, uint64_t bytes);

/* ENTER with the payload that `record` has already; keeps the serial for the LEAVE. */
void emit_enter(struct call *call, struct record *record, const void *stream);
/* LEAVE of the call's ENTER. */
void emit_leave(struct call *call, int result, uint64_t handle);
/* POINT with the payload that `record` has already. */
void emit_point(struct call *call, struct record *record, int result, const void *stream);

#endif
