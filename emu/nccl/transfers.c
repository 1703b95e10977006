/* transfers.c: messages between two members, through a ring of chunks.
 *
 * Either end announces a message and its length; chunks move once both have, so a send waits for
 * its receive. All messages of a launch make progress together, those with one peer in one
 * direction one after the other. Waiting is on the member's own bell, which peers ring. */
#include <driver_types.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"
#include "emu/core/model.h"
#include "emu/nccl/communicator.h"
#include "emu/nccl/operators.h"
#include "emu/nccl/task.h"

enum stage { NEW, ANNOUNCED, MOVING, STUCK, DONE };

struct transfer {
    bool sends;
    int peer;
    char *buffer;
    size_t bytes; /* of this end; once moving: what both ends have */
    size_t moved;
    enum stage stage;
    uint64_t due_ns; /* not done before, as modelled; 0: as soon as it is moved */
    struct emu_range *held;
};

static struct traffic *traffic_of(struct ncclComm *comm, const struct transfer *t)
{
    return t->sends ? &comm->sent[t->peer] : &comm->received[t->peer];
}

static struct segment_channel *channel_of(const struct ncclComm *comm, const struct transfer *t)
{
    return t->sends ? segment_channel(&comm->segment, comm->rank, t->peer)
                    : segment_channel(&comm->segment, t->peer, comm->rank);
}

static void announce_transfer(struct segment_channel *channel, struct transfer *t, uint64_t number)
{
    (t->sends ? channel->send_bytes : channel->recv_bytes)[number % 2] = t->bytes;
    atomic_store(t->sends ? &channel->sends : &channel->recvs, number + 1);
    t->stage = ANNOUNCED;
}

/* Both ends are there: from now on the link's modelled time runs. */
static void begin_transfer(const struct ncclComm *comm, struct transfer *t)
{
    const struct segment_member *members = comm->segment.members;
    uint64_t link_ns =
        emu_model_transfer_ns(members[comm->rank].device, members[t->peer].device, t->bytes);

    if (!link_ns)
        return;
    t->due_ns = emu_model_now() + link_ns;
    emu_model_count_transfer(link_ns);
}

/* True if the other end is there. */
static bool shake_hands(struct segment_channel *channel, struct transfer *t, uint64_t number)
{
    size_t other;

    if (atomic_load(t->sends ? &channel->recvs : &channel->sends) <= number)
        return false;
    other = (t->sends ? channel->recv_bytes : channel->send_bytes)[number % 2];
    t->stage = other == t->bytes || mismatch_corrupts() ? MOVING : STUCK;
    if (other < t->bytes)
        t->bytes = other;
    return true;
}

static size_t chunk_length(const struct ncclComm *comm, const struct transfer *t)
{
    size_t chunk = comm->segment.header->chunk_bytes, left = t->bytes - t->moved;

    return left < chunk ? left : chunk;
}

/* Moves what can be moved now. True if that was anything. */
static bool move_chunk(struct ncclComm *comm, struct segment_channel *channel, struct transfer *t,
                       struct traffic *traffic)
{
    size_t before = t->moved;

    while (t->moved < t->bytes) {
        size_t length = chunk_length(comm, t);
        int from = t->sends ? comm->rank : t->peer;
        int to = t->sends ? t->peer : comm->rank;
        char *chunk = segment_chunk(&comm->segment, from, to, traffic->chunks);

        if (t->sends) {
            if (traffic->chunks - atomic_load(&channel->read) == RING_CHUNKS)
                break;
            memcpy(chunk, t->buffer + t->moved, length);
        } else {
            if (traffic->chunks == atomic_load(&channel->written))
                break;
            memcpy(t->buffer + t->moved, chunk, length);
        }
        atomic_store(t->sends ? &channel->written : &channel->read, ++traffic->chunks);
        t->moved += length;
    }
    return t->moved > before;
}

/* One attempt to get on. True if anything happened. */
static bool advance_transfer(struct ncclComm *comm, struct transfer *t)
{
    struct segment_channel *channel = channel_of(comm, t);
    struct traffic *traffic = traffic_of(comm, t);
    bool news = false, progress = false;

    if (t->stage == NEW) {
        announce_transfer(channel, t, traffic->messages);
        news = true;
    }
    if (t->stage == ANNOUNCED) {
        progress = shake_hands(channel, t, traffic->messages);
        if (t->stage == MOVING)
            begin_transfer(comm, t);
    }
    if (t->stage == MOVING) {
        news |= move_chunk(comm, channel, t, traffic);
        if (t->moved == t->bytes && t->due_ns <= emu_model_now()) {
            t->stage = DONE;
            traffic->messages++;
            progress = true;
        }
    }
    if (news)
        bell_ring(&comm->segment.members[t->peer].bell);
    return news || progress;
}

/* One attempt for each that is first in its queue. Returns how many are not done. */
static size_t advance_all(struct ncclComm *comm, struct transfer *transfers, size_t count,
                          bool *queued, bool *progress)
{
    size_t left = 0;

    *progress = false;
    memset(queued, 0, (size_t)comm->ranks * 2 * sizeof(*queued));
    for (size_t i = 0; i < count; i++) {
        struct transfer *t = &transfers[i];
        bool *behind = &queued[t->peer * 2 + t->sends];

        if (t->stage == DONE || *behind)
            continue;
        *progress |= advance_transfer(comm, t);
        if (t->stage != DONE) {
            *behind = true;
            left++;
        }
    }
    return left;
}

/* If a message is moved, but its modelled time is not over: rests a little, and returns true. */
static bool wait_for_due(const struct transfer *transfers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (transfers[i].stage == MOVING && transfers[i].due_ns) {
            emu_model_wait(200000, NULL, NULL);
            return true;
        }
    return false;
}

static void progress_all(struct ncclComm *comm, struct transfer *transfers, size_t count,
                         bool *queued)
{
    struct bell *bell = &comm->segment.members[comm->rank].bell;
    struct guard guard = communicator_device_guard(comm);
    bool progress;

    for (;;) {
        uint32_t seen = bell_read(bell);

        if (!advance_all(comm, transfers, count, queued, &progress) || guard_stopped(&guard))
            return;
        if (!progress && !wait_for_due(transfers, count))
            bell_wait(bell, seen);
    }
}

static int set_up(struct ncclComm *comm, struct transfer *t, const struct task *task)
{
    t->sends = task->kind == TASK_SEND;
    t->peer = task->root;
    t->buffer = t->sends ? (char *)(uintptr_t)task->send : task->recv;
    t->bytes = datatype_total(task->type, task->count);
    return t->bytes ? emu_memory_hold(comm->device, t->buffer, t->bytes, false, &t->held) : 0;
}

int transfers_run(struct ncclComm *comm, const struct task *tasks, size_t count)
{
    struct transfer *transfers = calloc(count, sizeof(*transfers));
    bool *queued = calloc((size_t)comm->ranks * 2, sizeof(*queued));
    int error = transfers && queued ? 0 : cudaErrorMemoryAllocation;

    for (size_t i = 0; i < count && !error; i++)
        error = set_up(comm, &transfers[i], &tasks[i]);
    if (!error)
        progress_all(comm, transfers, count, queued);
    for (size_t i = 0; transfers && i < count; i++)
        emu_memory_release(transfers[i].held);
    free(transfers);
    free(queued);
    return error;
}
