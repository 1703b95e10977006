/* profiler.h: NCCL's side of its profiler plugin interface (abi/nccl_profiler.h), in the order and
 * on the threads that NCCL 2.28 has it (NVIDIA/nccl, src/plugin/profiler.cc, src/enqueue.cc).
 *
 * NCCL_PROFILER_PLUGIN names the library: a path, or NAME of libnccl-profiler-NAME.so; "none" is
 * none. DDPCHECK_EMU_NCCL_PROFILER=1..5 is the highest version of the interface that this NCCL
 * knows (5 if not set). */
#ifndef DDPCHECK_EMU_NCCL_PROFILER_H
#define DDPCHECK_EMU_NCCL_PROFILER_H

#include "emu/nccl/communicator.h"
#include "emu/nccl/task.h"

/* The communicator is complete; it is about to end. */
void profiler_attach(struct ncclComm *comm);
void profiler_detach(struct ncclComm *comm);

/* A call, by its name ("AllReduce"), was checked and becomes tasks: events of the API. `depth` of
 * groups, 1: its own. Returns what its tasks have to keep as task.call. */
void *profiler_call(struct ncclComm *comm, const char *name, const struct task *task, int depth);
/* The program's outermost ncclGroupEnd begins; the outermost group, the program's or a call's own,
 * is over. */
void profiler_group_ends(void);
void profiler_group_over(void);

/* The host's part of a launch: one plan and its tasks, whose `event` is set. */
void profiler_launch(struct ncclComm *comm, struct task *tasks, size_t count);
/* The device's part: the kernel works on a task; it is through (not called if it was stopped). */
void profiler_kernel_begins(struct ncclComm *comm, struct task *tasks, size_t count);
void profiler_kernel_ends(struct ncclComm *comm, struct task *tasks, size_t count);

#endif
