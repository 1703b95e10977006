/* progress_host.c: writes progress slots by what NCCL reports to its profiler plugin. The events of
 * a communicator come from one thread of NCCL's. */
#include "interpose/progress/progress_host.h"

#include <string.h>

#include "interpose/shim/forget.h"
#include "interpose/shim/shim.h"

enum { LAUNCHES = 32 }; /* under way at one time, as far as their channels are counted */

static struct {
    uint64_t launch;
    uint32_t channels;
} counted[RING_SLOTS_MAX][LAUNCHES];

void progress_host_forked(void)
{
    forget_state(counted, sizeof counted);
}

static void raise_launch(_Atomic uint64_t *word, uint64_t launch)
{
    uint64_t before = atomic_load_explicit(word, memory_order_relaxed);
    while (before < launch &&
           !atomic_compare_exchange_weak_explicit(word, &before, launch, memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

void progress_host_started(uint32_t slot, uint64_t launch)
{
    if (slot < RING_SLOTS_MAX)
        raise_launch(&shim.file->slot[slot].started, launch);
}

void progress_host_done(uint32_t slot, uint64_t launch, uint32_t channels)
{
    if (slot >= RING_SLOTS_MAX)
        return;
    __typeof__(&counted[0][0]) count = &counted[slot][launch % LAUNCHES];
    if (count->launch != launch) {
        count->launch = launch;
        count->channels = 0;
    }
    if (++count->channels >= channels)
        raise_launch(&shim.file->slot[slot].done, launch);
}
