/* hashing.h: hashes of payloads (DDPCHECK_HASH=1, ddpcheck run --hash).
 *
 * A kernel of kernels/cuda/payload.cu, embedded as a fat binary, runs on the operation's own stream
 * just before and just after it and leaves its result in the ring file (struct hash_entry), where
 * the collector finds it. Nobody waits: if no entry is free the hash is left out and counted.
 *
 *   what         Send buffers before; after as well where nothing of the operation writes them.
 *                Receive buffers after, where all ranks must hold the same (AllReduce, AllGather,
 *                Broadcast).
 *   in a group   NCCL puts work on the streams at the outermost ncclGroupEnd, so that is where the
 *                kernels go.
 *   left out     Operations captured into graphs; communicators that do not block (NCCL may put the
 *                operation on the stream at any later time); buffers that are not memory of the
 *                communicator's device, or that end before the operation does: the kernel must not
 *                fail where NCCL might not. Each is reported once. */
#ifndef DDPCHECK_INTERPOSE_HASHING_H
#define DDPCHECK_INTERPOSE_HASHING_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/comms.h"
#include "interpose/shim/thread.h"

/* Reads DDPCHECK_HASH into shim.hashing. Returns true. */
bool hashing_start(void);

/* A communicator was created: gets the kernel ready on its device, where no collective waits for us
 * yet. */
void hashing_prepare(struct shim_thread *thread, int device);

/* Between an operation's ENTER record and the real call; nothing is done now if a group is open. */
void hashing_operation(struct shim_thread *thread, const struct local_member *member,
                       const struct record *enter);
/* Before and after the real call that puts the thread's operations on their streams: the operation
 * itself, or the outermost ncclGroupEnd. `launched`: it was successful. */
void hashing_before(struct shim_thread *thread);
void hashing_after(struct shim_thread *thread, bool launched);

/* The hash of one buffer, for ddpcheck_hash. `job` needs comm, number, serial, rank, device,
 * stream. Returns false if it can't be made. */
bool hashing_buffer(struct shim_thread *thread, const struct hash_job *job, uint64_t name,
                    uint64_t pointer, uint64_t bytes);

/* In the child of a fork. */
void hashing_forked(void);

#endif
