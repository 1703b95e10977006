/* poll.h: programs that wait by querying a stream or an event until it is ready.
 *
 * Of queries only the answer that the work is done is recorded, for programs make many. But a
 * thread that makes the same query again and again, and no other call, waits: that is recorded as
 * one call, from when it is a loop to the answer or the thread's next other call. */
#ifndef DDPCHECK_POLL_H
#define DDPCHECK_POLL_H

#include <cuda_runtime_api.h>

#include "interpose/record/call.h"

/* Ends the thread's loop, if its last calls were one: result is what the last query returned. */
void poll_end(struct shim_thread *thread, cudaError_t result);

#endif
