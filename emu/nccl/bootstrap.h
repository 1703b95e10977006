/* bootstrap.h: how the members of a communicator find each other. */
#ifndef DDPCHECK_EMU_NCCL_BOOTSTRAP_H
#define DDPCHECK_EMU_NCCL_BOOTSTRAP_H

#include "emu/nccl/communicator.h"

/* Joins the communicator that comm->id names, as comm->rank of comm->ranks, and waits until all
 * have come. A member that does not fit (another number of ranks, a rank that is taken) waits for
 * ever, as in NCCL. Returns ncclSuccess, ncclInvalidUsage if two members are on one device (all
 * members find out), ncclSystemError, or ncclInternalError when aborted. */
ncclResult_t bootstrap_join(struct ncclComm *comm);

/* Waits until all members of a communicator are in the same host call. False when aborted. */
bool bootstrap_meet(struct ncclComm *comm);

#endif
