/* activity.c: passes what runs on the devices to who wants to know. */
#include "emu/core/activity.h"

#include <stdatomic.h>
#include <time.h>

static const struct emu_activity_listener *_Atomic activity_listener;

void emu_activity_listen(const struct emu_activity_listener *listener)
{
    atomic_store(&activity_listener, listener);
}

uint32_t emu_activity_launch(void)
{
    static _Atomic uint32_t launches;
    const struct emu_activity_listener *listener = atomic_load(&activity_listener);
    if (!listener)
        return 0;
    uint32_t correlation = atomic_fetch_add(&launches, 1) + 1;
    listener->launched(correlation);
    return correlation;
}

static uint64_t activity_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t emu_activity_begin(void)
{
    return atomic_load(&activity_listener) ? activity_clock_ns() : 0;
}

void emu_activity_lasted(struct emu_activity *activity, uint64_t begin_ns, uint64_t lasted_ns)
{
    const struct emu_activity_listener *listener = atomic_load(&activity_listener);
    if (!listener || !begin_ns)
        return;
    activity->begin_ns = begin_ns;
    activity->end_ns = begin_ns + lasted_ns;
    listener->ran(activity);
}

void emu_activity_end(struct emu_activity *activity, uint64_t begin_ns)
{
    if (begin_ns)
        emu_activity_lasted(activity, begin_ns, activity_clock_ns() - begin_ns);
}
