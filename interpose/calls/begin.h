/* begin.h: begins and ends the recording of a call. */
#ifndef DDPCHECK_CALL_BEGIN_H
#define DDPCHECK_CALL_BEGIN_H

#include "interpose/process/start.h"
#include "interpose/record/call.h"
#include "interpose/stacks/exceptions.h"

/* The rest of call_begin of a call that uses USED_*. */
bool call_begin_active(struct recorded_call *call, uint32_t uses);
void call_end(struct recorded_call *call);

/* Begins recording a call. Returns false if it has to pass through: the shim is dormant or off, or
 * this is a call from within another recorded call. `starts`: this call starts a dormant shim. On
 * true, call_end has to follow. */
static inline __attribute__((always_inline)) bool call_begin(struct recorded_call *call,
                                                             enum api api, bool starts,
                                                             bool per_thread, const void *site,
                                                             const void *frame)
{
    uint32_t state = atomic_load_explicit(&shim.state, memory_order_acquire);
    if (state != SHIM_ACTIVE && (!starts || state == SHIM_OFF)) {
        if (state == SHIM_DORMANT)
            exceptions_watch(shim_start);
        return false;
    }
    if (thread_is_inside(&thread_self, frame))
        return false;
    *call = (struct recorded_call){.api = (uint16_t)api,
                                   .per_thread = per_thread,
                                   .site = site,
                                   .frame = frame,
                                   .slot = RECORD_NO_SLOT};
    uint32_t uses = starts ? USED_NCCL : 0;
    if (api != API_ncclGetUniqueId && api != API_ncclGroupStart)
        uses |= USED_CUDA;
    return call_begin_active(call, uses);
}

#endif
