/* progress_events.c: moves progress slots by events. Driver calls only: they leave no error behind
 * that the program could see. */
#include "interpose/progress/progress_events.h"

#include <string.h>

#include "interpose/real/gpu.h"
#include "interpose/real/resolve.h"
#include "interpose/shim/forget.h"

enum { EVENTS = 256 };

enum { EVENT_FREE, EVENT_CLAIMED, EVENT_PENDING };

struct pending_event {
    _Atomic uint32_t state;
    int device;
    CUevent event; /* kept for the next use on the same device */
    _Atomic uint64_t *word;
    uint64_t value;
};

static struct {
    struct pending_event entry[EVENTS];
    _Atomic uint32_t next, pending, polling;
} events;

bool progress_events_record(CUstream stream, int device, _Atomic uint64_t *word, uint64_t value)
{
    __typeof__(&cuEventCreate) create = REAL_HELPER(cuEventCreate);
    __typeof__(&cuEventRecord) record = REAL_HELPER(cuEventRecord);
    if (!create || !record || atomic_load_explicit(&shim.captures, memory_order_relaxed) > 0)
        return false;
    int mode = gpu_relax_captures();
    bool usable = false;
    for (uint32_t i = 0; i < EVENTS; i++) {
        struct pending_event *entry = &events.entry[atomic_fetch_add(&events.next, 1) % EVENTS];
        uint32_t state = EVENT_FREE;
        if ((entry->event && entry->device != device) ||
            !atomic_compare_exchange_strong(&entry->state, &state, EVENT_CLAIMED))
            continue;
        usable = entry->event || create(&entry->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
        entry->device = device;
        entry->word = word;
        entry->value = value;
        usable = usable && record(entry->event, stream) == CUDA_SUCCESS;
        if (usable)
            atomic_fetch_add(&events.pending, 1);
        atomic_store(&entry->state, usable ? EVENT_PENDING : EVENT_FREE);
        break;
    }
    gpu_restore_captures(mode);
    return usable;
}

static void raise_reached(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t now = atomic_load(word);
    while (now < value && !atomic_compare_exchange_weak(word, &now, value))
        ;
}

void progress_events_poll(void)
{
    __typeof__(&cuEventQuery) query = REAL_HELPER(cuEventQuery);
    if (!atomic_load_explicit(&events.pending, memory_order_relaxed) || !query ||
        atomic_load_explicit(&shim.captures, memory_order_relaxed) > 0 || thread_self.in_callback ||
        atomic_exchange(&events.polling, 1))
        return;
    int mode = gpu_relax_captures();
    for (uint32_t i = 0; i < EVENTS; i++) {
        struct pending_event *entry = &events.entry[i];
        if (atomic_load(&entry->state) != EVENT_PENDING)
            continue;
        CUresult result = query(entry->event);
        if (result == CUDA_ERROR_NOT_READY)
            continue;
        if (result == CUDA_SUCCESS)
            raise_reached(entry->word, entry->value);
        atomic_fetch_sub(&events.pending, 1);
        atomic_store(&entry->state, EVENT_FREE);
    }
    gpu_restore_captures(mode);
    atomic_store(&events.polling, 0);
}

void progress_events_forked(void)
{
    forget_state(&events, sizeof events);
}
