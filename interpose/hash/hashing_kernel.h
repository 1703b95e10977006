/* hashing_kernel.h: the kernel that hashes a buffer (kernels/cuda/payload.cu), on each device, and
 * the entries of the ring file that it writes to. */
#ifndef DDPCHECK_INTERPOSE_HASHING_KERNEL_H
#define DDPCHECK_INTERPOSE_HASHING_KERNEL_H

#include "interpose/hash/hashing.h"

/* Starts the kernel on the job's stream. Returns false if it can't, which is counted in the ring
 * file's hash_lost: no entry is free, the kernel could not be loaded, or the driver refused. False
 * and not counted where nothing is hashed. */
bool hashing_kernel_run(struct shim_thread *thread, const struct hash_job *job, enum hash_what what,
                        uint64_t name, uint64_t pointer, uint64_t bytes);

/* In the child of a fork: contexts and pages are the parent's. */
void hashing_kernel_forked(void);

#endif
