/* progress.h: the GPU reports how far each stream of a communicator's member got.
 *
 * Around each launch of collectives the stream writes the launch's number (1, 2, ... per slot) into
 * the slot's started and done words in the ring file (cuStreamWriteValue64). Nobody in the process
 * waits or polls, and the collector reads the words even when the process is dead. Where the driver
 * refuses such writes, events are recorded instead and queried in later calls. */
#ifndef DDPCHECK_PROGRESS_H
#define DDPCHECK_PROGRESS_H

#include <stdint.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "interpose/shim/thread.h"

/* Registers the slots with the driver, once. `device` is one that NCCL uses already. */
void progress_prepare(int device, struct shim_thread *thread);

/* The slot of (member, stream), or RECORD_NO_SLOT if none is left or there is no way to write
 * progress. */
uint32_t progress_slot(struct local_member *member, cudaStream_t stream);

/* Slots are written by the process itself from now on (progress_host.h), unless the GPU does so
 * already. */
void progress_prepare_host(void);
/* Counts a launch on such a slot; its number. */
uint64_t progress_take_launch(uint32_t slot);

/* The device of the slot's member. */
int progress_slot_device(uint32_t slot);

/* The number that the slot's next launch will have. */
uint64_t progress_next_launch(uint32_t slot);

/* Enqueue the launch's number before and after it. A launch that failed is done at once: the stream
 * waits for nothing. One that NCCL finishes in the background is done at progress_flush.
 */
void progress_begin(struct shim_thread *thread, uint32_t slot);
void progress_end(struct shim_thread *thread, uint32_t slot, ncclResult_t result);

/* A nonblocking communicator has put everything on its streams. */
void progress_flush(struct shim_thread *thread, struct local_member *member);

/* Without writes by the driver: queries the events. Cheap if there are none. */
void progress_poll(void);

/* The stream is destroyed: it gets no more writes. */
void progress_forget_stream(cudaStream_t stream);

/* The member's communicator ends: its slots may be used by others once the GPU is done with them.
 */
void progress_release(struct local_member *member);

/* After cudaDeviceReset the registration is gone: the next communicator registers anew. */
void progress_device_reset(void);

/* In the child of a fork. */
void progress_forked(void);

#endif
