/* A random legal program, the same for the same FUZZ_SEED: collectives, groups, messages, copies,
 * memsets, kernels and host waits on three streams, by events in order where they touch the same
 * buffer, over three communicators. With FUZZ_FAULT rank FUZZ_RANK makes one fault of that name in
 * a step of chance. Started as the suite's programs are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum {
    RANKS = 4,
    COMMS = 3,
    STREAMS = 3,
    BUFFERS = 6,
    ELEMENTS = 8192,
    LARGEST = 1000,
    STEPS = 30
};

struct world {
    struct rank *me;
    ncclComm_t comm[COMMS];
    int rank[COMMS], ranks[COMMS]; /* rank -1: not a member */
    cudaStream_t stream[STREAMS];
    float *buffer[BUFFERS];
    cudaEvent_t used[BUFFERS]; /* after its last use */
    cudaStream_t foreign;      /* of the next device */
    const char *fault;
    int faulty_rank, faulty_step;
};

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

/* The draws of a step are the same on every rank, whatever the rank then does with them. */
struct step {
    uint64_t kind, comm, stream, from, to, count, type, op, root, other;
};

static struct step draw_step(uint64_t *state)
{
    return (struct step){
        draw(state) % 9,       draw(state) % COMMS,   draw(state) % STREAMS,
        draw(state) % BUFFERS, draw(state) % BUFFERS, 1 + draw(state) % LARGEST,
        draw(state) % 4,       draw(state) % 5,       draw(state) % 2,
        draw(state),
    };
}

static const ncclDataType_t types[] = {ncclFloat32, ncclInt32, ncclFloat16, ncclInt64};
static const ncclRedOp_t operators[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

static bool is_here(const struct world *world, int step, const char *fault)
{
    return !strcmp(world->fault, fault) && world->me->rank == world->faulty_rank &&
           step == world->faulty_step;
}

/* `stream` takes the buffer over from the stream that had it last, and hands it on. */
static void take(struct world *world, cudaStream_t stream, uint64_t buffer)
{
    CUDA(cudaStreamWaitEvent(stream, world->used[buffer], 0));
}

static void give(struct world *world, cudaStream_t stream, uint64_t buffer)
{
    CUDA(cudaEventRecord(world->used[buffer], stream));
}

static void collective(struct world *world, int number, struct step step)
{
    ncclComm_t comm = world->comm[step.comm];
    cudaStream_t stream = world->stream[step.stream];
    ncclDataType_t type = types[step.type];
    ncclRedOp_t op = operators[step.op];
    const float *from = world->buffer[step.from];
    float *to = world->buffer[step.to];
    int root = (int)step.root;

    step.count += is_here(world, number, "count");
    if (is_here(world, number, "type"))
        type = ncclFloat64;
    if (is_here(world, number, "operator"))
        op = operators[(step.op + 1) % 5];
    if (is_here(world, number, "root"))
        root = !root;
    if (is_here(world, number, "no such root"))
        root = RANKS;
    if (is_here(world, number, "past the end"))
        to += ELEMENTS - 1;
    if (is_here(world, number, "foreign stream"))
        stream = world->foreign;
    switch ((step.other + is_here(world, number, "kind")) % 5) {
    case 0:
        NCCL(ncclAllReduce(from, to, step.count, type, op, comm, stream));
        break;
    case 1:
        NCCL(ncclBroadcast(from, to, step.count, type, root, comm, stream));
        break;
    case 2:
        NCCL(ncclReduce(from, to, step.count, type, op, root, comm, stream));
        break;
    case 3:
        NCCL(ncclAllGather(from, to, step.count, type, comm, stream));
        break;
    default:
        NCCL(ncclReduceScatter(from, to, step.count, type, op, comm, stream));
        break;
    }
}

static void group_of_three(struct world *world, int number, struct step step)
{
    ncclComm_t comm = world->comm[step.comm];
    cudaStream_t stream = world->stream[step.stream];

    NCCL(ncclGroupStart());
    for (int i = 0; i < 3; i++) {
        int which = is_here(world, number, "order") ? 2 - i : i;
        float *part = world->buffer[step.to] + which * LARGEST;
        NCCL(ncclAllReduce(part, part, step.count / 4 + 1 + (size_t)which, ncclFloat32,
                           operators[step.op], comm, stream));
    }
    NCCL(ncclGroupEnd());
}

/* Uneven messages from everybody to everybody; the empty ones are left out on both sides, or on
 * none. */
static void messages(struct world *world, int number, struct step step)
{
    int rank = world->rank[step.comm], ranks = world->ranks[step.comm];

    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
        int peer = (rank + i) % ranks;
        size_t out = (step.other + (uint64_t)(rank * 3 + peer * 5)) % 4 * 100,
               in = (step.other + (uint64_t)(peer * 3 + rank * 5)) % 4 * 100;
        bool keeps_empty = step.count % 2;
        if (out || keeps_empty)
            NCCL(ncclSend(world->buffer[step.from] + peer * LARGEST, out, ncclFloat32, peer,
                          world->comm[step.comm], world->stream[step.stream]));
        if (in && peer != rank && is_here(world, number, "message"))
            in--;
        if (in || keeps_empty)
            NCCL(ncclRecv(world->buffer[step.to] + peer * LARGEST, in, ncclFloat32, peer,
                          world->comm[step.comm], world->stream[step.stream]));
    }
    NCCL(ncclGroupEnd());
}

static void local_work(struct world *world, struct step step)
{
    cudaStream_t stream = world->stream[step.stream];
    float *from = world->buffer[step.from], *to = world->buffer[step.to];

    if (step.kind == 6)
        CUDA(cudaMemsetAsync(to, 0, step.count * sizeof *to, stream));
    else if (step.kind == 7)
        CUDA(cudaMemcpyAsync(to, from, step.count * sizeof *to, cudaMemcpyDeviceToDevice, stream));
    else
        CUDA(kernels_add(step.count, to, from, stream));
}

static void act(struct world *world, int number, struct step step)
{
    cudaStream_t stream = world->stream[step.stream];
    bool communicates = step.kind < 6, member = world->rank[step.comm] >= 0;

    if (step.from == step.to)
        step.from = (step.to + 1) % BUFFERS;
    if (communicates && (!member || is_here(world, number, "skip")))
        return;
    if (communicates && is_here(world, number, "host memory"))
        world->buffer[step.to] = malloc(ELEMENTS * sizeof(float));
    take(world, stream, step.from);
    take(world, stream, step.to);
    if (step.kind < 4)
        collective(world, number, step);
    else if (step.kind == 4)
        group_of_three(world, number, step);
    else if (step.kind == 5)
        messages(world, number, step);
    else
        local_work(world, step);
    give(world, stream, step.from);
    give(world, stream, step.to);
    if (step.other % 11 == 0)
        CUDA(cudaStreamSynchronize(stream));
    if (step.other % 13 == 0)
        CUDA(cudaDeviceSynchronize());
}

/* Communicator 0 has all ranks, 1 two halves, 2 all but rank 0, in reverse order. */
static void set_up(struct world *world)
{
    struct rank *me = world->me;

    world->comm[0] = me->comm;
    NCCL(ncclCommSplit(me->comm, me->rank / 2, me->rank, &world->comm[1], NULL));
    NCCL(ncclCommSplit(me->comm, me->rank ? 0 : NCCL_SPLIT_NOCOLOR, -me->rank, &world->comm[2],
                       NULL));
    for (int i = 0; i < COMMS; i++) {
        world->rank[i] = -1;
        if (!world->comm[i])
            continue;
        NCCL(ncclCommUserRank(world->comm[i], &world->rank[i]));
        NCCL(ncclCommCount(world->comm[i], &world->ranks[i]));
    }
    CUDA(cudaSetDevice((me->rank + 1) % me->ranks));
    CUDA(cudaStreamCreateWithFlags(&world->foreign, cudaStreamNonBlocking));
    CUDA(cudaSetDevice(me->rank));
    CUDA(cudaStreamCreateWithFlags(&world->stream[0], cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&world->stream[1], cudaStreamNonBlocking));
    CUDA(cudaStreamCreate(&world->stream[2]));
    for (int i = 0; i < BUFFERS; i++) {
        world->buffer[i] = suite_floats(ELEMENTS);
        CUDA(cudaEventCreateWithFlags(&world->used[i], cudaEventDisableTiming));
        CUDA(cudaEventRecord(world->used[i], world->stream[0]));
    }
    CUDA(cudaDeviceSynchronize());
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* The first step from `step` on in which the fault can be made by all that communicate in it. */
static bool fits(const char *fault, struct step step)
{
    static const struct {
        const char *fault;
        uint64_t first, last;
        int kind;
    } where[] = {
        {"count", 0, 3, -1},       {"type", 0, 3, -1},        {"kind", 0, 3, -1},
        {"operator", 0, 3, 0},     {"root", 0, 3, 1},         {"order", 4, 4, -1},
        {"message", 5, 5, -1},     {"skip", 0, 3, -1},        {"host memory", 0, 3, 0},
        {"no such root", 0, 3, 1}, {"past the end", 0, 3, 0}, {"foreign stream", 0, 3, -1},
    };

    for (size_t i = 0; i < sizeof where / sizeof *where; i++)
        if (!strcmp(fault, where[i].fault))
            return step.comm == 0 && step.kind >= where[i].first && step.kind <= where[i].last &&
                   (where[i].kind < 0 || step.other % 5 == (uint64_t)where[i].kind);
    return false;
}

/* A program in which the fault fits nowhere gets a step of that kind in the middle. */
static void random_program(struct rank *me)
{
    const char *fault = getenv("FUZZ_FAULT");
    struct world world = {.me = me,
                          .fault = fault ? fault : "",
                          .faulty_rank = (int)number_of("FUZZ_RANK", 0),
                          .faulty_step = -1};
    uint64_t state = number_of("FUZZ_SEED", 1) * 2654435761u + 88172645463325252u;
    struct step step[STEPS];

    for (int i = 0; i < STEPS; i++)
        step[i] = draw_step(&state);
    for (int i = 0; i < STEPS && world.faulty_step < 0 && fault; i++)
        if (fits(fault, step[i]))
            world.faulty_step = i;
    for (int i = 0; world.faulty_step < 0 && fault && i < 100000; i++) {
        step[STEPS / 2] = draw_step(&state);
        if (fits(fault, step[STEPS / 2]))
            world.faulty_step = STEPS / 2;
    }
    set_up(&world);
    for (int i = 0; i < STEPS; i++)
        act(&world, i, step[i]);
    CUDA(cudaDeviceSynchronize());
    for (int i = 1; i < COMMS; i++)
        if (world.comm[i])
            NCCL(ncclCommDestroy(world.comm[i]));
}

SUITE_CASE(.run = random_program, .ranks = RANKS, .layout = PROCESSES);
