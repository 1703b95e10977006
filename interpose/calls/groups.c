/* groups.c: records ncclGroupStart and ncclGroupEnd. NCCL launches a group's operations at its
 * outermost end, so that is where progress is written. */
#include <string.h>

#include "interpose/calls/communicators.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/hash/hashing.h"
#include "interpose/progress/progress.h"
#include "interpose/calls/recording.h"
#include "interpose/timing/timing.h"

void group_started(struct recorded_call *call, ncclResult_t result)
{
    struct shim_thread *thread = call->thread;
    struct record record = {.result = result};
    emit_prepare(call, &record, RECORD_POINT, NULL);
    if (result == ncclSuccess && thread->group_depth++ == 0) {
        thread->group = record.serial;
        thread->group_calls = 0;
        thread->group_refused = false;
        memset(thread->group_slots, 0, sizeof thread->group_slots);
    }
    record.group.group = thread->group;
    record.group.depth = thread->group_depth;
    emit(thread, &record, RING_CONTROL);
}

static void visit_group_slots(struct shim_thread *thread,
                              void (*visit)(struct shim_thread *, uint32_t, ncclResult_t),
                              ncclResult_t result)
{
    for (uint32_t word = 0; word < RING_SLOTS_MAX / 64; word++)
        for (uint64_t bits = thread->group_slots[word]; bits; bits &= bits - 1)
            visit(thread, word * 64 + (uint32_t)__builtin_ctzll(bits), result);
}

static void begin_launch(struct shim_thread *thread, uint32_t slot, ncclResult_t result)
{
    (void)result;
    progress_begin(thread, slot);
}

static void time_launch(struct shim_thread *thread, uint32_t slot, ncclResult_t result)
{
    (void)result;
    timing_add(thread, slot, progress_next_launch(slot) - 1, progress_slot_device(slot));
}

/* An inner end only counts; an end without a start is recorded; NCCL refuses it. */
void group_end_enter(struct recorded_call *call)
{
    struct shim_thread *thread = call->thread;
    if (thread->group_depth > 1)
        return;
    struct record record = {.group = {.group = thread->group,
                                      .depth = thread->group_depth,
                                      .calls = thread->group_calls}};
    emit_enter(call, &record, NULL);
    if (shim.hashing && call->api == API_ncclGroupEnd)
        hashing_before(thread);
    if (call->api == API_ncclGroupEnd)
        visit_group_slots(thread, begin_launch, ncclSuccess);
    if (shim.timing && call->api == API_ncclGroupEnd && !(call->flags & RECORD_FLAG_REPLAY)) {
        visit_group_slots(thread, time_launch, ncclSuccess);
        timing_push(thread);
    }
}

void group_end_leave(struct recorded_call *call, ncclResult_t result)
{
    struct shim_thread *thread = call->thread;
    if (thread->group_depth)
        thread->group_depth--;
    timing_pop(thread);
    if (!call->enter)
        return;
    if (call->api == API_ncclGroupEnd)
        visit_group_slots(thread, progress_end, result);
    if (shim.hashing)
        hashing_after(thread, call->api == API_ncclGroupEnd && result == ncclSuccess);
    memset(thread->group_slots, 0, sizeof thread->group_slots);
    thread->group = 0;
    emit_leave(call, result, 0);
    communicators_group_ended(thread, result);
    progress_poll();
}
