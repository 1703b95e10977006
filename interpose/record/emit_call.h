/* emit_call.h: makes the records of a call and emits them. */
#ifndef DDPCHECK_EMIT_CALL_H
#define DDPCHECK_EMIT_CALL_H

#include "interpose/record/call.h"

/* Fills in what every record has, with time and serial of now. `stream` as the call was given it.
 * The call's stack is taken (and emitted) first. */
void emit_prepare(struct recorded_call *call, struct record *record, enum record_phase phase,
                  const void *stream);

/* The part of it that does not depend on when the record is emitted: who did what, on which
 * stream. */
void emit_describe(struct recorded_call *call, struct record *record, enum record_phase phase,
                   const void *stream);

/* ENTER with the payload that `record` has already; keeps the serial for the LEAVE. */
void emit_enter(struct recorded_call *call, struct record *record, const void *stream);
/* LEAVE of the call's ENTER. */
void emit_leave(struct recorded_call *call, int result, uint64_t handle);
/* LEAVE of an operation of a member on this device: also records what was launched there before it.
 */
void emit_operation_leave(struct recorded_call *call, int result, int32_t device);
/* POINT with the payload that `record` has already. */
void emit_point(struct recorded_call *call, struct record *record, int result, const void *stream);

#endif
