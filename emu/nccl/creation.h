/* creation.h: what all ways to make a communicator share: a handle at once, a job that fills it. */
#ifndef DDPCHECK_EMU_NCCL_CREATION_H
#define DDPCHECK_EMU_NCCL_CREATION_H

#include "emu/nccl/group.h"

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
