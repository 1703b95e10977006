/* timing.h: exact times of operations, kernels and copies from CUPTI's activity records
 * (DDPCHECK_TIMING=1, ddpcheck run --timing).
 *
 * CUPTI fills buffers with a record for each kernel, copy and memory set, and calls back at each
 * launch, by which those of NCCL's calls are known. A thread of the shim's own has CUPTI hand the
 * buffers over ten times a second, joins the records (stretches.h) and appends them to the bulk
 * ring. So the program's threads do nothing for it but to name their launches. Nothing of CUPTI is
 * called in signal handlers or in the child of a fork; at exit that thread takes what is left, and
 * exit waits for it for at most a second.
 *
 * Where CUPTI is missing, unknown or a profiler's, one line on stderr says so, and operations keep
 * the times of the progress words. Launches of graphs and by NCCL's own threads (communicators that
 * do not block) keep those as well: no call names their operations. */
#ifndef DDPCHECK_TIMING_H
#define DDPCHECK_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/thread.h"

/* Reads DDPCHECK_TIMING into shim.timing. Returns true. */
bool timing_start(void);

/* A communicator was created, so CUDA is in use: starts CUPTI, once, if shim.timing. */
void timing_prepare(void);

/* The real call that follows launches this: adds it to what timing_push names. */
void timing_add(struct shim_thread *thread, uint32_t slot, uint64_t launch, int device);
/* Before and after the real call that puts the thread's operations on their streams. */
void timing_push(struct shim_thread *thread);
void timing_pop(struct shim_thread *thread);

/* In the child of a fork: CUPTI is the parent's. */
void timing_forked(void);

#endif
