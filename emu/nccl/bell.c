/* bell.c: waits for and wakes ranks through a futex in shared memory. */
#include "emu/nccl/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emu/core.h"

bool guard_stopped(const struct guard *guard)
{
    return atomic_load(guard->stop) >= guard->level ||
           (guard->device >= 0 && emu_device_error(guard->device));
}

void bell_ring(struct bell *bell)
{
    atomic_fetch_add(&bell->number, 1);
    if (atomic_load(&bell->waiters))
        syscall(SYS_futex, &bell->number, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t bell_read(const struct bell *bell)
{
    return atomic_load(&bell->number);
}

void bell_wait(struct bell *bell, uint32_t seen)
{
    static const struct timespec limit = {.tv_nsec = 100 * 1000 * 1000};

    atomic_fetch_add(&bell->waiters, 1);
    /* Whatever ends it (news, a signal, the limit), the caller looks again. */
    if (atomic_load(&bell->number) == seen)
        syscall(SYS_futex, &bell->number, FUTEX_WAIT, seen, &limit, NULL, 0);
    atomic_fetch_sub(&bell->waiters, 1);
}

bool meeting_attend(struct rendezvous *meeting, int ranks, uint64_t *passed,
                    const struct guard *guard)
{
    uint64_t everybody = ++*passed * (uint64_t)ranks;

    if (atomic_fetch_add(&meeting->arrivals, 1) + 1 == everybody) {
        bell_ring(&meeting->bell);
        return true;
    }
    for (;;) {
        uint32_t seen = bell_read(&meeting->bell);

        if (atomic_load(&meeting->arrivals) >= everybody)
            return true;
        if (guard_stopped(guard))
            return false;
        bell_wait(&meeting->bell, seen);
    }
}
