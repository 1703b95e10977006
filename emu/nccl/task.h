/* task.h: one thing that a member does in a communicator: a collective, or one end of a message. */
#ifndef DDPCHECK_EMU_NCCL_TASK_H
#define DDPCHECK_EMU_NCCL_TASK_H

#include <nccl.h>
#include <stddef.h>

#include "emu/nccl/reduce.h"

struct emu_range;
struct ncclComm;

enum { EMU_CHANNELS = 2 }; /* of the pretended kernel */

enum task_kind {
    TASK_ALL_REDUCE,
    TASK_BROADCAST,
    TASK_REDUCE,
    TASK_ALL_GATHER,
    TASK_REDUCE_SCATTER,
    TASK_COLLECTIVES, /* how many kinds of collectives there are */
    TASK_SEND = TASK_COLLECTIVES,
    TASK_RECV,
    TASK_ONE_SIDED, /* one_sided.c */
};

struct one_sided;

struct task {
    enum task_kind kind;
    const void *send;
    void *recv;
    size_t count; /* as in the call */
    ncclDataType_t type;
    struct reduction reduction;
    int root; /* of a message: the peer */
    cudaStream_t stream;
    struct one_sided *one_sided; /* of TASK_ONE_SIDED: what it does, owned */
    void *call, *event;          /* profiler.h's handles */
    void *channels[EMU_CHANNELS];
};

/* True if DDPCHECK_EMU_MISMATCH=corrupt: calls that do not match complete with wrong or short data
 * instead of hanging. */
int mismatch_corrupts(void);

/* collectives.c: does a collective with the other members. Returns 0 or the cudaError_t that the
 * device fails with; 0 also if it was stopped. */
int collective_run(struct ncclComm *comm, const struct task *task);

/* transfers.c: does all the messages together, those with one peer in order. Same result. */
int transfers_run(struct ncclComm *comm, const struct task *tasks, size_t count);

#endif
