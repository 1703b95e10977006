/* host_functions.c: records when functions of cudaLaunchHostFunc and cudaStreamAddCallback run. The
 * stream is given a function of ours, which records the begin, calls the program's, and records the
 * end.
 *
 * What goes with a function lies in a fixed pool: a slot is taken by the launch and given back by
 * the one run. A launch that is captured runs any number of times, or never; it is forwarded as it
 * is. */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "interpose/record/emit_call.h"
#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/calls/recording.h"

enum { SLOTS = 1024, TRIES = 64, YIELDS = 1000, PAUSES = 10000, PAUSE_NS = 100000 };

struct host_function_slot {
    _Atomic uint32_t taken;
    _Atomic uint64_t serial; /* of the LAUNCH record, once it was made */
    cudaHostFn_t function;
    cudaStreamCallback_t callback; /* one of the two */
    void *argument;
    uint64_t stream;
};

/* Not reset in the child of a fork: there nothing of it runs. */
static struct {
    struct host_function_slot slot[SLOTS];
    _Atomic uint32_t next;
} host_functions;

static struct host_function_slot *take_slot(struct recorded_call *call, cudaStream_t stream)
{
    if (gpu_is_capturing(stream))
        return NULL;
    for (int i = 0; i < TRIES; i++) {
        struct host_function_slot *slot =
            &host_functions
                 .slot[atomic_fetch_add_explicit(&host_functions.next, 1, memory_order_relaxed) %
                       SLOTS];
        if (atomic_exchange_explicit(&slot->taken, 1, memory_order_acquire))
            continue;
        atomic_store_explicit(&slot->serial, 0, memory_order_relaxed);
        slot->stream = !stream && call->per_thread ? (uintptr_t)cudaStreamPerThread
                                                   : (uintptr_t)stream;
        call->token = slot;
        return slot;
    }
    return NULL;
}

static void record_run(const struct host_function_slot *slot, uint64_t serial, enum api api)
{
    struct shim_thread *thread = &thread_self;
    if (!serial || thread_is_inside(thread, __builtin_frame_address(0)) ||
        atomic_load_explicit(&shim.state, memory_order_acquire) != SHIM_ACTIVE)
        return;
    thread_enter(thread, __builtin_frame_address(0));
    int error = errno;
    if (thread->attached || attach_thread(thread)) {
        struct record record = {.stream = slot->stream, .leave = {.enter = serial}};
        emit_notice_on(thread, &record, api, RECORD_NO_DEVICE);
    }
    errno = error;
    thread->inside = 0;
}

/* The stream may be quicker than the launching thread, whose record has to come first. 0: it never
 * came. */
static uint64_t wait_for_serial(struct host_function_slot *slot)
{
    uint64_t serial = atomic_load_explicit(&slot->serial, memory_order_acquire);
    for (int tries = 0; !serial && tries < YIELDS + PAUSES; tries++) {
        if (tries < YIELDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        serial = atomic_load_explicit(&slot->serial, memory_order_acquire);
    }
    return serial;
}

/* In a host function CUDA may not be called, neither by what records it nor by what records the
 * program's own calls in it (NVTX ranges). */
static void CUDART_CB run_function(void *argument)
{
    struct host_function_slot *shared = argument, slot = *shared;
    uint64_t serial = wait_for_serial(shared);
    thread_self.in_callback = true;
    record_run(&slot, serial, API_notice_host_function);
    slot.function(slot.argument);
    record_run(&slot, serial, API_notice_host_function_end);
    thread_self.in_callback = false;
    atomic_store_explicit(&shared->taken, 0, memory_order_release);
}

static void CUDART_CB run_callback(cudaStream_t stream, cudaError_t status, void *argument)
{
    struct host_function_slot *shared = argument, slot = *shared;
    uint64_t serial = wait_for_serial(shared);
    thread_self.in_callback = true;
    record_run(&slot, serial, API_notice_host_function);
    slot.callback(stream, status, slot.argument);
    record_run(&slot, serial, API_notice_host_function_end);
    thread_self.in_callback = false;
    atomic_store_explicit(&shared->taken, 0, memory_order_release);
}

void host_function_prepare(struct recorded_call *call, cudaStream_t stream, cudaHostFn_t *function,
                           void **argument)
{
    struct host_function_slot *slot = *function ? take_slot(call, stream) : NULL;
    if (!slot)
        return;
    slot->function = *function;
    slot->argument = *argument;
    *function = run_function;
    *argument = slot;
}

void callback_prepare(struct recorded_call *call, cudaStream_t stream,
                      cudaStreamCallback_t *callback, void **argument)
{
    struct host_function_slot *slot = *callback ? take_slot(call, stream) : NULL;
    if (!slot)
        return;
    slot->callback = *callback;
    slot->argument = *argument;
    *callback = run_callback;
    *argument = slot;
}

void host_function_launched(struct recorded_call *call, cudaError_t result, cudaStream_t stream)
{
    struct host_function_slot *slot = call->token;
    struct record record = {.launch = {.known = slot && !result ? LAUNCH_REPORTS_RUN : 0}};
    record.flags |= gpu_capture_flag(stream);
    emit_point(call, &record, result, stream);
    if (slot && result)
        atomic_store_explicit(&slot->taken, 0, memory_order_release);
    else if (slot)
        atomic_store_explicit(&slot->serial, record.serial, memory_order_release);
}
