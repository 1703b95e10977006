/* collectives.c: collectives over staging buffers in shared memory.
 *
 * The members first meet and compare what they are about to do. Then they go through the data in
 * rounds: each puts its piece into its own stage, all meet, each takes what it needs from the
 * others' stages. A member has two stages and uses them in turn; a member at the next meeting has
 * finished reading, so one meeting for each round is enough. Each element is reduced by one member,
 * in order of rank, so results are the same bits everywhere, always.
 *
 * All sizes below are bytes that the members agreed on, so that a mismatch that is to corrupt data
 * can't make them disagree about rounds or reach outside a buffer. */
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"
#include "emu/core/model.h"
#include "emu/nccl/communicator.h"
#include "emu/nccl/operators.h"
#include "emu/nccl/task.h"

enum { ALIGNMENT = 64 }; /* of pieces: whole elements of every type */

/* A collective at work. */
struct exchange {
    struct ncclComm *comm;
    const struct task *task;
    const char *send; /* NULL: this member has nothing to send */
    char *recv;       /* NULL: it is not to receive */
    size_t bytes;     /* of `count` elements */
    int root;
    const void *scalar;
    struct guard guard;
    uint64_t work_ns; /* when this member's own work began, after it had met the others */
};

static bool meet_members(struct exchange *x)
{
    struct ncclComm *comm = x->comm;
    bool all_came;

    emu_model_work(emu_device_get(comm->device), x->work_ns);
    all_came = meeting_attend(&comm->segment.header->device_meeting, comm->ranks, &comm->device_met,
                              &x->guard);
    x->work_ns = emu_model_now();
    return all_came;
}

static char *stage_of(const struct exchange *x, int rank)
{
    return segment_stage(&x->comm->segment, rank, x->comm->stage_rounds);
}

static size_t stage_bytes(const struct exchange *x)
{
    return x->comm->segment.header->stage_bytes;
}

static size_t smaller_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Puts a piece of the input into a stage, multiplied first if the reduction wants it. */
static void put_piece(const struct exchange *x, char *stage, size_t offset, size_t bytes)
{
    if (!x->send)
        return;
    memcpy(stage, x->send + offset, bytes);
    if (x->task->reduction.scales)
        reduce_scale(x->task->type, x->scalar, stage, bytes / datatype_bytes(x->task->type));
}

/* Reduces [offset, offset+bytes) of all stages into `into`. */
static void reduce_stages(const struct exchange *x, char *into, size_t offset, size_t bytes)
{
    const struct task *task = x->task;
    size_t elements = bytes / datatype_bytes(task->type);

    memcpy(into, stage_of(x, 0) + offset, bytes);
    for (int rank = 1; rank < x->comm->ranks; rank++)
        reduce_combine(task->reduction.combine, task->type, into, stage_of(x, rank) + offset,
                       elements);
    if (task->reduction.divisor)
        reduce_divide(task->type, task->reduction.divisor, into, elements);
}

/* Each member reduces its part of a piece into its next stage; then all take all parts. */
static bool exchange_all_reduce(struct exchange *x)
{
    struct ncclComm *comm = x->comm;
    size_t ranks = (size_t)comm->ranks, piece;

    for (size_t base = 0; base < x->bytes; base += piece) {
        size_t part, from, until;
        char *result;

        piece = smaller_size(x->bytes - base, stage_bytes(x));
        part = (piece / ranks + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
        from = smaller_size((size_t)comm->rank * part, piece);
        until = smaller_size(from + part, piece);
        put_piece(x, stage_of(x, comm->rank), base, piece);
        if (!meet_members(x))
            return false;
        result = segment_stage(&comm->segment, comm->rank, comm->stage_rounds + 1);
        reduce_stages(x, result + from, from, until - from);
        comm->stage_rounds++;
        if (!meet_members(x))
            return false;
        for (int rank = 0; rank < comm->ranks; rank++) {
            from = smaller_size((size_t)rank * part, piece);
            until = smaller_size(from + part, piece);
            memcpy(x->recv + base + from, stage_of(x, rank) + from, until - from);
        }
        comm->stage_rounds++;
    }
    return true;
}

/* Round by round: a member that gives puts its piece into its stage, and all take from the stages.
 */
static bool exchange_pieces(struct exchange *x, bool gives,
                            void (*take)(struct exchange *x, size_t base, size_t piece))
{
    size_t piece;

    for (size_t base = 0; base < x->bytes; base += piece) {
        piece = smaller_size(x->bytes - base, stage_bytes(x));
        if (gives)
            put_piece(x, stage_of(x, x->comm->rank), base, piece);
        if (!meet_members(x))
            return false;
        take(x, base, piece);
        x->comm->stage_rounds++;
    }
    return true;
}

static void take_from_root(struct exchange *x, size_t base, size_t piece)
{
    memcpy(x->recv + base, stage_of(x, x->root), piece);
}

static bool exchange_broadcast(struct exchange *x)
{
    return exchange_pieces(x, x->comm->rank == x->root, take_from_root);
}

static void take_reduced(struct exchange *x, size_t base, size_t piece)
{
    if (x->comm->rank == x->root && x->recv)
        reduce_stages(x, x->recv + base, 0, piece);
}

static bool exchange_reduce(struct exchange *x)
{
    return exchange_pieces(x, true, take_reduced);
}

static void take_from_all(struct exchange *x, size_t base, size_t piece)
{
    for (int rank = 0; rank < x->comm->ranks; rank++)
        memcpy(x->recv + (size_t)rank * x->bytes + base, stage_of(x, rank), piece);
}

static bool exchange_all_gather(struct exchange *x)
{
    return exchange_pieces(x, true, take_from_all);
}

/* A stage holds a piece of each member's block. */
static bool exchange_reduce_scatter(struct exchange *x)
{
    size_t room = stage_bytes(x) / (size_t)x->comm->ranks / ALIGNMENT * ALIGNMENT, piece;

    for (size_t base = 0; base < x->bytes; base += piece) {
        piece = smaller_size(x->bytes - base, room);
        for (int rank = 0; rank < x->comm->ranks; rank++)
            put_piece(x, stage_of(x, x->comm->rank) + (size_t)rank * room,
                      (size_t)rank * x->bytes + base, piece);
        if (!meet_members(x))
            return false;
        reduce_stages(x, x->recv + base, (size_t)x->comm->rank * room, piece);
        x->comm->stage_rounds++;
    }
    return true;
}

enum side { NOBODY, ROOT, EVERYBODY };

/* Who sends and receives how much: one block of `count` elements, or one for each member. */
static const struct {
    bool (*run)(struct exchange *x);
    enum side sends, receives;
    bool send_blocks, recv_blocks;
    enum { ONCE, FROM_OTHERS, THERE_AND_BACK } passes; /* how often a ring's links carry the data */
} collectives[TASK_COLLECTIVES] = {
    [TASK_ALL_REDUCE] = {exchange_all_reduce, EVERYBODY, EVERYBODY, false, false, THERE_AND_BACK},
    [TASK_BROADCAST] = {exchange_broadcast, ROOT, EVERYBODY, false, false, ONCE},
    [TASK_REDUCE] = {exchange_reduce, EVERYBODY, ROOT, false, false, ONCE},
    [TASK_ALL_GATHER] = {exchange_all_gather, EVERYBODY, EVERYBODY, false, true, FROM_OTHERS},
    [TASK_REDUCE_SCATTER] = {exchange_reduce_scatter, EVERYBODY, EVERYBODY, true, false,
                             FROM_OTHERS},
};

/* What each link of a ring of all members carries, as nccl-tests counts it (PERFORMANCE.md, bus
 * bandwidth): an AllReduce all but one of the parts twice, an AllGather the blocks of the others.
 */
static uint64_t bytes_on_link(const struct exchange *x)
{
    uint64_t others = (uint64_t)x->comm->ranks - 1;

    switch (collectives[x->task->kind].passes) {
    case THERE_AND_BACK:
        return 2 * x->bytes * others / (uint64_t)x->comm->ranks;
    case FROM_OTHERS:
        return x->bytes * others;
    default:
        return others ? x->bytes : 0;
    }
}

/* The time of the ring's slowest link. */
static uint64_t ring_time_ns(const struct exchange *x)
{
    const struct segment_member *members = x->comm->segment.members;
    uint64_t bytes = bytes_on_link(x), slowest_ns = 0;

    for (int rank = 0; rank < x->comm->ranks; rank++) {
        int next = (rank + 1) % x->comm->ranks;
        uint64_t link_ns = emu_model_transfer_ns(members[rank].device, members[next].device, bytes);

        if (link_ns > slowest_ns)
            slowest_ns = link_ns;
    }
    return slowest_ns;
}

static bool exchange_stopped(const void *context)
{
    const struct exchange *x = context;

    return guard_stopped(&x->guard);
}

/* Runs the collective, in which all members are by now, for at least the modelled time. */
static void run_exchange(struct exchange *x)
{
    uint64_t began_ns = emu_model_now();
    uint64_t ring_ns = began_ns ? ring_time_ns(x) : 0;

    if (!collectives[x->task->kind].run(x) || !began_ns)
        return;
    emu_model_work(emu_device_get(x->comm->device), x->work_ns);
    if (ring_ns)
        emu_model_count_transfer(ring_ns);
    uint64_t spent_ns = emu_model_now() - began_ns;
    if (ring_ns > spent_ns)
        emu_model_wait(ring_ns - spent_ns, exchange_stopped, x);
}

int mismatch_corrupts(void)
{
    const char *value = getenv("DDPCHECK_EMU_MISMATCH");

    return value && !strcmp(value, "corrupt");
}

static void sleep_until_stopped(struct exchange *x)
{
    struct bell *bell = &x->comm->segment.header->device_meeting.bell;

    for (;;) {
        uint32_t seen = bell_read(bell);

        if (guard_stopped(&x->guard))
            return;
        bell_wait(bell, seen);
    }
}

/* Calls of different kinds: whatever a GPU would leave behind, here the start of its own input. */
static void leave_garbage(const struct exchange *x, size_t send_bytes, size_t recv_bytes)
{
    if (x->send && x->recv)
        memmove(x->recv, x->send, smaller_size(send_bytes, recv_bytes));
}

/* Compares with the other members. Sets x->bytes and x->root to what all can do. */
static bool agree(struct exchange *x, bool *same_kind)
{
    struct ncclComm *comm = x->comm;
    uint64_t number = comm->collectives++;
    const struct task *task = x->task;
    struct call_signature own = {(int32_t)task->kind, (int32_t)task->type, task->reduction.op,
                                 task->root, task->count};
    bool same = true;

    comm->segment.members[comm->rank].signatures[number % 2] = own;
    if (!meet_members(x))
        return false;
    *same_kind = true;
    x->root = comm->segment.members[0].signatures[number % 2].root;
    for (int rank = 0; rank < comm->ranks; rank++) {
        const struct call_signature *other = &comm->segment.members[rank].signatures[number % 2];

        same &= !memcmp(other, &own, sizeof(own));
        *same_kind &= other->kind == own.kind;
        x->bytes =
            smaller_size(x->bytes, datatype_total((ncclDataType_t)other->type, other->count));
    }
    if (same)
        return true;
    if (!mismatch_corrupts()) {
        sleep_until_stopped(x);
        return false;
    }
    x->bytes = x->bytes / 8 * 8;
    return true;
}

/* Forgets what a member has no part in by its own account; nobody checked those pointers. */
static bool takes_part(enum side side, const struct ncclComm *comm, int root)
{
    return side == EVERYBODY || (side == ROOT && comm->rank == root);
}

int collective_run(struct ncclComm *comm, const struct task *task)
{
    struct exchange x = {.comm = comm,
                         .task = task,
                         .bytes = datatype_total(task->type, task->count),
                         .scalar = &task->reduction.scalar,
                         .guard = communicator_device_guard(comm)};
    bool sends = takes_part(collectives[task->kind].sends, comm, task->root);
    bool receives = takes_part(collectives[task->kind].receives, comm, task->root);
    size_t send_blocks = collectives[task->kind].send_blocks ? (size_t)comm->ranks : 1;
    size_t recv_blocks = collectives[task->kind].recv_blocks ? (size_t)comm->ranks : 1;
    size_t send_bytes = datatype_total(task->type, sends ? task->count * send_blocks : 0);
    size_t recv_bytes = datatype_total(task->type, receives ? task->count * recv_blocks : 0);
    struct emu_range *held[3] = {0};
    bool same_kind;
    int error = 0;

    if (sends)
        error = emu_memory_hold(comm->device, task->send, send_bytes, false, &held[0]);
    if (!error && receives)
        error = emu_memory_hold(comm->device, task->recv, recv_bytes, false, &held[1]);
    if (!error && task->reduction.device_scalar) {
        x.scalar = task->reduction.device_scalar;
        error =
            emu_memory_hold(comm->device, x.scalar, datatype_bytes(task->type), false, &held[2]);
    }
    x.send = sends ? task->send : NULL;
    x.recv = receives ? task->recv : NULL;
    if (!error && agree(&x, &same_kind)) {
        if (same_kind)
            run_exchange(&x);
        else
            leave_garbage(&x, send_bytes, recv_bytes);
    }
    for (int i = 0; i < 3; i++)
        emu_memory_release(held[i]);
    return error;
}
