/* bootstrap.c: creates or joins the shared memory of a communicator and waits for all members. */
#include "emu/nccl/bootstrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/nccl/errors.h"

enum { PENDING = 64 };

/* Segments that still have a name because a rank is missing, to be unlinked if the process exits.
 */
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct segment *pending[PENDING];
static pid_t pending_owner; /* a forked child must leave them alone */

static void pending_set(const struct segment *from, const struct segment *to)
{
    pthread_mutex_lock(&pending_lock);
    pending_owner = getpid();
    for (int i = 0; i < PENDING; i++)
        if (pending[i] == from) {
            pending[i] = to;
            break;
        }
    pthread_mutex_unlock(&pending_lock);
}

__attribute__((destructor)) static void unlink_pending(void)
{
    /* exit() may have interrupted the holder; then the next job clears up. */
    if (pthread_mutex_trylock(&pending_lock))
        return;
    for (int i = 0; i < PENDING && pending_owner == getpid(); i++)
        if (pending[i])
            segment_unlink(pending[i]);
    pthread_mutex_unlock(&pending_lock);
}

/* NCCL_HOSTID makes NCCL take processes of one machine for others' ("Environment Variables"). */
static uint64_t host_number(void)
{
    char name[256] = "";
    const char *id = getenv("NCCL_HOSTID");
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    gethostname(name, sizeof(name) - 1);
    for (const char *c = id && *id ? id : name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return hash;
}

/* With the segment's lock held: takes the place. False if it is taken. */
static bool take_place(struct ncclComm *comm, struct segment *segment)
{
    struct segment_member *me = &segment->members[comm->rank];
    const struct emu_device *device = emu_device_get(comm->device);

    if (me->present || !device)
        return false;
    me->process = getpid();
    me->host = host_number();
    me->device = device->physical;
    me->present = true;
    if (atomic_fetch_add(&segment->header->joined, 1) + 1 == comm->ranks)
        segment_unlink(segment); /* all have mapped it */
    bell_ring(&segment->header->joins);
    return true;
}

/* Joins the others. 1: there is no place for it here. */
static int join_segment(struct ncclComm *comm)
{
    struct segment segment = {0};
    int lock, joined = segment_open(&segment, comm->id, comm->ranks, &lock);
    bool placed;

    pthread_mutex_lock(&comm->lock);
    comm->segment = segment;
    pthread_mutex_unlock(&comm->lock);
    if (joined)
        return joined;
    placed = take_place(comm, &comm->segment);
    segment_unlock(lock);
    return !placed;
}

static bool wait_for_all(struct ncclComm *comm)
{
    struct header *header = comm->segment.header;
    struct guard guard = communicator_host_guard(comm);
    bool all;

    pending_set(NULL, &comm->segment);
    for (;;) {
        uint32_t seen = bell_read(&header->joins);

        all = atomic_load(&header->joined) == comm->ranks;
        if (all || guard_stopped(&guard))
            break;
        bell_wait(&header->joins, seen);
    }
    pending_set(&comm->segment, NULL);
    if (!all)
        segment_unlink(&comm->segment); /* it can't become complete any more */
    return all;
}

static ncclResult_t check_devices(const struct ncclComm *comm)
{
    const struct segment_member *members = comm->segment.members;

    for (int a = 0; a < comm->ranks; a++)
        for (int b = a + 1; b < comm->ranks; b++)
            if (members[a].host == members[b].host && members[a].device == members[b].device)
                return fail(ncclInvalidUsage,
                            "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x",
                            a, b, (unsigned)(members[a].device + 1) << 12);
    return ncclSuccess;
}

ncclResult_t bootstrap_join(struct ncclComm *comm)
{
    int joined = join_segment(comm);

    if (joined < 0)
        return fail(ncclSystemError,
                    "Can't make or map the communicator's shared memory %s for %d ranks: %s. "
                    "Free space in /dev/shm, or give the container more (--shm-size)",
                    comm->segment.name, comm->ranks, strerror(errno));
    if (joined > 0) {
        communicator_hang(comm);
        return fail(ncclInternalError,
                    "Initialisation was aborted: the communicator has no place for rank %d of %d",
                    comm->rank, comm->ranks);
    }
    if (!wait_for_all(comm))
        return fail(ncclInternalError, "Initialisation was aborted: %d of %d ranks had arrived",
                    atomic_load(&comm->segment.header->joined), comm->ranks);
    return check_devices(comm);
}

bool bootstrap_meet(struct ncclComm *comm)
{
    struct guard guard = communicator_host_guard(comm);

    return meeting_attend(&comm->segment.header->host_meeting, comm->ranks, &comm->host_met,
                          &guard);
}
