/* launch.h: what a group gives one communicator to do becomes one piece of work on a stream. */
#ifndef DDPCHECK_EMU_NCCL_LAUNCH_H
#define DDPCHECK_EMU_NCCL_LAUNCH_H

#include "emu/nccl/communicator.h"
#include "emu/nccl/task.h"

/* Enqueues the tasks (copied) on their streams and returns. Collectives run in order, then all
 * messages together. If the tasks name several streams, all of them wait for the launch, and it
 * for all of them. Launches of one communicator run in the order of these calls, whatever their
 * streams; those that a graph replays run when they get there. */
ncclResult_t launch_push(struct ncclComm *comm, const struct task *tasks, size_t count);

#endif
