/* emit.h: appends records to the calling thread's rings, and makes the shim's own notices. */
#ifndef DDPCHECK_EMIT_H
#define DDPCHECK_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/thread.h"

/* The ring of a call's records: bulk for copies, kernels and ranges, control for all else. */
int emit_ring(uint16_t api);
enum api_class emit_class(uint16_t api);

/* Fills in who did what (thread, device, call). */
void emit_name(struct shim_thread *thread, struct record *record, uint16_t api,
               enum record_phase phase);
/* Fills in time and serial of now. */
void emit_stamp(struct record *record);

/* Appends. Returns false if the record was lost (it was counted). */
bool emit(struct shim_thread *thread, const struct record *record, int ring);

/* A record that was kept as emit_describe made it, emitted now. */
void emit_late(struct shim_thread *thread, struct record *record);

/* A notice of the shim: fills in what every record has; the caller has filled in the payload.
 * Returns false if it was lost. */
bool emit_notice(struct shim_thread *thread, struct record *record, enum api api);

/* The same with another device than the thread's current one. */
bool emit_notice_on(struct shim_thread *thread, struct record *record, enum api api,
                    int32_t device);

/* Emits a string once. Returns its id. */
uint64_t emit_string(struct shim_thread *thread, const char *text, uint64_t bytes);

/* In the child of a fork. */
void emit_forked(void);

#endif
