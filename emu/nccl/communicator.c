/* communicator.c: creates, stops, retires and frees a communicator's handle. */
#include "emu/nccl/communicator.h"

#include <stdlib.h>
#include <string.h>

#include "emu/nccl/errors.h"
#include "emu/nccl/operators.h"
#include "emu/nccl/profiler.h"
#include "emu/nccl/registrations.h"

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `live` */
static struct ncclComm *live;

struct ncclComm *communicator_new(int rank, int ranks, int device, const ncclConfig_t *config)
{
    struct ncclComm *comm = calloc(1, sizeof(*comm));

    if (!comm)
        return NULL;
    comm->device = device;
    comm->config = *config;
    comm->references = 1;
    comm->state = ncclInProgress;
    pthread_mutex_init(&comm->issue, NULL);
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->changed, NULL);
    if (!communicator_resize(comm, rank, ranks)) {
        free(comm);
        return NULL;
    }
    pthread_mutex_lock(&live_lock);
    comm->next = live;
    live = comm;
    pthread_mutex_unlock(&live_lock);
    return comm;
}

bool communicator_resize(struct ncclComm *comm, int rank, int ranks)
{
    struct traffic *traffic = calloc((size_t)ranks * 2 + 1, sizeof(*traffic));
    uint64_t *signals = calloc((size_t)ranks * SIGNALS + 1, sizeof(*signals));

    if (!traffic || !signals) {
        free(traffic);
        free(signals);
        return false;
    }
    free(comm->sent);
    free(comm->received_signals);
    comm->received_signals = signals;
    comm->sent = traffic;
    comm->received = traffic + ranks;
    comm->rank = rank;
    comm->ranks = ranks;
    return true;
}

struct ncclComm *communicator_get(ncclComm_t handle)
{
    struct ncclComm *comm;

    pthread_mutex_lock(&live_lock);
    for (comm = live; comm && comm != handle; comm = comm->next)
        continue;
    if (comm)
        communicator_hold(comm);
    pthread_mutex_unlock(&live_lock);
    return comm;
}

void communicator_hold(struct ncclComm *comm)
{
    atomic_fetch_add(&comm->references, 1);
}

void communicator_put(struct ncclComm *comm)
{
    if (atomic_fetch_sub(&comm->references, 1) > 1)
        return;
    segment_close(&comm->segment);
    operators_free(comm);
    registrations_free(comm);
    pthread_cond_destroy(&comm->changed);
    pthread_mutex_destroy(&comm->lock);
    pthread_mutex_destroy(&comm->issue);
    free(comm->sent);
    free(comm->received_signals);
    free(comm);
}

bool communicator_retire(struct ncclComm *comm)
{
    struct ncclComm **link;
    bool found;

    pthread_mutex_lock(&live_lock);
    for (link = &live; *link && *link != comm; link = &(*link)->next)
        continue;
    found = *link;
    if (found)
        *link = comm->next;
    pthread_mutex_unlock(&live_lock);
    if (found)
        profiler_detach(comm);
    if (found)
        communicator_put(comm);
    return found;
}

ncclResult_t communicator_ready(struct ncclComm *comm)
{
    ncclResult_t state = (ncclResult_t)atomic_load(&comm->state);

    if (state == ncclInProgress)
        return fail(
            ncclInvalidArgument,
            "Attempt to use communicator before the previous operation returned ncclSuccess");
    if (atomic_load(&comm->stop))
        return fail(ncclInvalidUsage,
                    "Communicator was revoked or aborted: no further operations on it");
    if (atomic_load(&comm->finalized))
        return fail(ncclInvalidUsage, "Communicator was finalized: no further operations on it");
    return state;
}

bool communicator_blocking(const struct ncclComm *comm)
{
    return comm->config.blocking;
}

void communicator_stop(struct ncclComm *comm, enum stop why)
{
    pthread_mutex_lock(&comm->lock);
    if (atomic_load(&comm->stop) < (int)why)
        atomic_store(&comm->stop, (int)why);
    pthread_cond_broadcast(&comm->changed);
    if (comm->segment.bytes) {
        bell_ring(&comm->segment.header->joins);
        bell_ring(&comm->segment.header->device_meeting.bell);
        bell_ring(&comm->segment.header->host_meeting.bell);
        bell_ring(&comm->segment.members[comm->rank].bell);
    }
    pthread_mutex_unlock(&comm->lock);
}

void communicator_hang(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    while (atomic_load(&comm->stop) < STOP_ABORTED)
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

void communicator_drain(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    while ((comm->first || comm->running || comm->recorded || comm->one_sided) &&
           !atomic_load(&comm->stop))
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

struct guard communicator_device_guard(const struct ncclComm *comm)
{
    return (struct guard){.stop = &comm->stop, .level = STOP_REVOKED, .device = comm->device};
}

struct guard communicator_host_guard(const struct ncclComm *comm)
{
    return (struct guard){.stop = &comm->stop, .level = STOP_ABORTED, .device = -1};
}

uint64_t communicator_host_number(struct ncclComm *comm)
{
    uint64_t number;

    pthread_mutex_lock(&comm->lock);
    number = comm->host_issued++;
    pthread_mutex_unlock(&comm->lock);
    return number;
}

void communicator_host_return(struct ncclComm *comm, uint64_t number)
{
    pthread_mutex_lock(&comm->lock);
    if (comm->host_issued == number + 1)
        comm->host_issued--;
    pthread_mutex_unlock(&comm->lock);
}

bool communicator_host_enter(struct ncclComm *comm, uint64_t number)
{
    bool aborted;

    pthread_mutex_lock(&comm->lock);
    while (comm->host_done != number && atomic_load(&comm->stop) < STOP_ABORTED)
        pthread_cond_wait(&comm->changed, &comm->lock);
    aborted = atomic_load(&comm->stop) >= STOP_ABORTED;
    pthread_mutex_unlock(&comm->lock);
    return !aborted;
}

void communicator_host_leave(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->host_done++;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}
