/* host_functions.c: cudaLaunchHostFunc and cudaStreamAddCallback. The stream is given a function of
 * ours, which says that the program's begins to run, calls it, and says that it is over.
 *
 * What goes with a function lies in a fixed pool: a slot is taken by the launch and given back by
 * the one run. A launch that is captured runs any number of times, or never; it is handed on as it
 * is. */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "interpose/record/emit.h"
#include "interpose/progress/gpu.h"
#include "interpose/record/recording.h"

enum { SLOTS = 1024, TRIES = 64, YIELDS = 1000, NAPS = 10000, NAP_NS = 100000 };

static struct host_function {
    _Atomic uint32_t taken;
    _Atomic uint64_t serial; /* of the LAUNCH record, once it was made */
    cudaHostFn_t function;
    cudaStreamCallback_t callback; /* one of the two */
    void *argument;
    uint64_t stream;
} pool[SLOTS];

static _Atomic uint32_t next;

/* The pool is the parent's as well; its streams run on there. */
static struct host_function *take(struct call *call, cudaStream_t stream)
{
    if (gpu_is_capturing(stream))
        return NULL;
    for (int i = 0; i < TRIES; i++) {
        struct host_function *slot =
            &pool[atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % SLOTS];
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

static void tell(const struct host_function *slot, uint64_t serial, enum api api)
{
    struct thread *thread = &thread_self;
    if (!serial || thread->inside ||
        atomic_load_explicit(&shim.state, memory_order_acquire) != SHIM_ACTIVE)
        return;
    thread->inside = 1;
    int error = errno;
    if (thread->attached || thread_attach(thread)) {
        struct record record = {.stream = slot->stream, .leave = {.enter = serial}};
        emit_notice_on(thread, &record, api, RECORD_NO_DEVICE);
    }
    errno = error;
    thread->inside = 0;
}

/* The stream may be quicker than the launching thread, whose record has to come first. 0: it never
 * came. */
static uint64_t serial_of(struct host_function *slot)
{
    uint64_t serial = atomic_load_explicit(&slot->serial, memory_order_acquire);
    for (int tries = 0; !serial && tries < YIELDS + NAPS; tries++) {
        if (tries < YIELDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        serial = atomic_load_explicit(&slot->serial, memory_order_acquire);
    }
    return serial;
}

static void CUDART_CB run_function(void *argument)
{
    struct host_function *shared = argument, slot = *shared;
    uint64_t serial = serial_of(shared);
    tell(&slot, serial, API_notice_host_function);
    slot.function(slot.argument);
    tell(&slot, serial, API_notice_host_function_end);
    atomic_store_explicit(&shared->taken, 0, memory_order_release);
}

static void CUDART_CB run_callback(cudaStream_t stream, cudaError_t status, void *argument)
{
    struct host_function *shared = argument, slot = *shared;
    uint64_t serial = serial_of(shared);
    tell(&slot, serial, API_notice_host_function);
    slot.callback(stream, status, slot.argument);
    tell(&slot, serial, API_notice_host_function_end);
    atomic_store_explicit(&shared->taken, 0, memory_order_release);
}

void host_function_prepare(struct call *call, cudaStream_t stream, cudaHostFn_t *function,
                           void **argument)
{
    struct host_function *slot = *function ? take(call, stream) : NULL;
    if (!slot)
        return;
    slot->function = *function;
    slot->argument = *argument;
    *function = run_function;
    *argument = slot;
}

void callback_prepare(struct call *call, cudaStream_t stream, cudaStreamCallback_t *callback,
                      void **argument)
{
    struct host_function *slot = *callback ? take(call, stream) : NULL;
    if (!slot)
        return;
    slot->callback = *callback;
    slot->argument = *argument;
    *callback = run_callback;
    *argument = slot;
}

void host_function_launched(struct call *call, cudaError_t result, cudaStream_t stream)
{
    struct host_function *slot = call->token;
    struct record record = {.launch = {.known = slot && !result ? LAUNCH_TELLS_RUN : 0}};
    record.flags |= gpu_capture_flag(stream);
    emit_point(call, &record, result, stream);
    if (slot && result)
        atomic_store_explicit(&slot->taken, 0, memory_order_release);
    else if (slot)
        atomic_store_explicit(&slot->serial, record.serial, memory_order_release);
}
