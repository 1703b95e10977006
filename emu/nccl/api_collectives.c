/* api_collectives.c: the calls that move data. Each checks its arguments as NCCL does (pointers are
 * found out by the device) and adds one task or a few to the group. */
#include <nccl.h>

#include "emu/nccl/communicator.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/group.h"
#include "emu/nccl/operators.h"
#include "emu/nccl/profiler.h"

struct collective_call {
    const char *name;
    ncclComm_t comm;
    struct task task;
    ncclRedOp_t op;
    bool reduces;
    ncclResult_t (*add)(struct ncclComm *comm, const struct task *task);
};

static ncclResult_t check_collective(const struct collective_call *call, struct ncclComm *comm,
                                     struct task *task)
{
    ncclResult_t result = communicator_ready(comm);

    if (result)
        return result;
    if (task->root < 0 || task->root >= comm->ranks)
        return fail(ncclInvalidArgument, "%s : invalid %s %d (should be in the 0..%d range)",
                    call->name, task->kind >= TASK_COLLECTIVES ? "peer" : "root", task->root,
                    comm->ranks - 1);
    if (!datatype_valid(task->type))
        return fail(ncclInvalidArgument, "%s : invalid type %d", call->name, (int)task->type);
    return call->reduces ? operator_find(comm, call->name, call->op, task->type, &task->reduction)
                         : ncclSuccess;
}

static ncclResult_t issue_collective(const struct collective_call *call)
{
    struct ncclComm *comm = communicator_get(call->comm);
    struct task task = call->task;
    ncclResult_t result;

    group_enter();
    if (comm) {
        result = check_collective(call, comm, &task);
        if (!result && (task.count || task.kind >= TASK_COLLECTIVES))
            task.call = profiler_call(comm, call->name, &task, group_depth());
        if (!result)
            result = call->add(comm, &task);
        communicator_put(comm);
    } else {
        result = fail(ncclInvalidArgument, "%s : comm argument is NULL or not a communicator",
                      call->name);
    }
    return group_leave(result);
}

/* NCCL drops collectives of no elements: they wait for no other rank. */
static ncclResult_t add_collective(struct ncclComm *comm, const struct task *task)
{
    return task->count ? group_add_task(comm, task) : ncclSuccess;
}

static const void *rank_block_of(const struct task *task, const void *buffer, int rank)
{
    return (const char *)buffer + (size_t)rank * datatype_total(task->type, task->count);
}

/* One end of a message of block `rank` of either buffer. */
static ncclResult_t add_message(struct ncclComm *comm, const struct task *task, enum task_kind kind,
                                int peer, const void *buffer)
{
    struct task message = *task;

    message.kind = kind;
    message.root = peer;
    message.send = buffer;
    message.recv = (void *)(uintptr_t)buffer;
    return group_add_task(comm, &message);
}

/* AlltoAll, Gather and Scatter are messages, in NCCL as well. */
static ncclResult_t add_all_to_all(struct ncclComm *comm, const struct task *task)
{
    ncclResult_t result = ncclSuccess;

    for (int peer = 0; peer < comm->ranks && !result && task->count; peer++) {
        result = add_message(comm, task, TASK_SEND, peer, rank_block_of(task, task->send, peer));
        if (!result)
            result =
                add_message(comm, task, TASK_RECV, peer, rank_block_of(task, task->recv, peer));
    }
    return result;
}

static ncclResult_t add_gather(struct ncclComm *comm, const struct task *task)
{
    ncclResult_t result = ncclSuccess;

    if (!task->count)
        return ncclSuccess;
    for (int peer = 0; comm->rank == task->root && peer < comm->ranks && !result; peer++)
        result = add_message(comm, task, TASK_RECV, peer, rank_block_of(task, task->recv, peer));
    return result ? result : add_message(comm, task, TASK_SEND, task->root, task->send);
}

static ncclResult_t add_scatter(struct ncclComm *comm, const struct task *task)
{
    ncclResult_t result = ncclSuccess;

    if (!task->count)
        return ncclSuccess;
    for (int peer = 0; comm->rank == task->root && peer < comm->ranks && !result; peer++)
        result = add_message(comm, task, TASK_SEND, peer, rank_block_of(task, task->send, peer));
    return result ? result : add_message(comm, task, TASK_RECV, task->root, task->recv);
}

/* CALL(function, parameters, how it is added, reduces, op, task) */
#define CALL(function, parameters, adder, does_reduce, operation, ...)              \
    PUBLIC(function);                                                               \
    ncclResult_t function parameters                                                \
    {                                                                               \
        struct collective_call call = {                                             \
            .name = &#function[4],                                                  \
            .comm = comm,                                                           \
            .add = adder,                                                           \
            .reduces = does_reduce,                                                 \
            .op = operation,                                                        \
            .task = {.count = count, .type = type, .stream = stream, __VA_ARGS__}}; \
        return issue_collective(&call);                                             \
    }

CALL(ncclAllReduce,
     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
      ncclComm_t comm, cudaStream_t stream),
     add_collective, true, op, .kind = TASK_ALL_REDUCE, .send = send, .recv = recv)
CALL(ncclReduce,
     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
      ncclComm_t comm, cudaStream_t stream),
     add_collective, true, op, .kind = TASK_REDUCE, .send = send, .recv = recv, .root = root)
CALL(ncclReduceScatter,
     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
      ncclComm_t comm, cudaStream_t stream),
     add_collective, true, op, .kind = TASK_REDUCE_SCATTER, .send = send, .recv = recv)
CALL(ncclBcast,
     (void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
      cudaStream_t stream),
     add_collective, false, ncclSum, .kind = TASK_BROADCAST, .send = buffer, .recv = buffer,
     .root = root)
CALL(ncclBroadcast,
     (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
      cudaStream_t stream),
     add_collective, false, ncclSum, .kind = TASK_BROADCAST, .send = send, .recv = recv,
     .root = root)
CALL(ncclAllGather,
     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
      cudaStream_t stream),
     add_collective, false, ncclSum, .kind = TASK_ALL_GATHER, .send = send, .recv = recv)
CALL(ncclAlltoAll,
     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
      cudaStream_t stream),
     add_all_to_all, false, ncclSum, .send = send, .recv = recv)
CALL(ncclGather,
     (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
      cudaStream_t stream),
     add_gather, false, ncclSum, .send = send, .recv = recv, .root = root)
CALL(ncclScatter,
     (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
      cudaStream_t stream),
     add_scatter, false, ncclSum, .send = send, .recv = recv, .root = root)
CALL(ncclSend,
     (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
      cudaStream_t stream),
     group_add_task, false, ncclSum, .kind = TASK_SEND, .send = send, .root = peer)
CALL(ncclRecv,
     (void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
      cudaStream_t stream),
     group_add_task, false, ncclSum, .kind = TASK_RECV, .recv = recv, .root = peer)
