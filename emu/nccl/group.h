/* group.h: ncclGroupStart/End of the calling thread. Every call goes through a group, its own one
 * if the program opened none. */
#ifndef DDPCHECK_EMU_NCCL_GROUP_H
#define DDPCHECK_EMU_NCCL_GROUP_H

#include "emu/nccl/communicator.h"
#include "emu/nccl/task.h"

/* A host call that waits for other members or for the device. It runs when the group ends: in the
 * calling thread, or beside the group's other jobs, or (nonblocking) in the background. */
struct group_job {
    struct group_job *next;
    ncclResult_t (*run)(struct group_job *job);
    void (*free)(struct group_job *job);
    bool blocking;
    pthread_t thread;
    ncclResult_t result;
};

void group_enter(void);
int group_depth(void);
/* Ends one level; the outermost runs the jobs and launches the tasks. `result` is that of the call
 * in between: an error makes the whole group fail. */
ncclResult_t group_leave(ncclResult_t result);

/* Adds a task for the group's end. ncclSystemError if there is no memory. */
ncclResult_t group_add_task(struct ncclComm *comm, const struct task *task);
/* Hands the job over; its `free` is called in any case. */
void group_add_job(struct group_job *job);

/* What all ways to make a communicator share: a handle at once, a job that fills it. */

/* The first member of a job that makes a communicator. */
struct creation {
    struct group_job job;
    struct ncclComm *comm; /* a reference; NULL if this member gets none (a split's NOCOLOR) */
    ncclComm_t *slot;      /* the program's variable */
};

/* Gives the program its handle and the creation a reference to it. */
void creation_begin(struct creation *creation, struct ncclComm *comm, ncclComm_t *slot,
                    bool blocking);
/* Makes the outcome known. A blocking call that failed leaves no communicator. Returns `result`. */
ncclResult_t creation_end(struct creation *creation, ncclResult_t result);
/* Gives up the reference. For a job's `free`. */
void creation_release(struct creation *creation);

#endif
