/* worker.h: the thread behind a stream. */
#ifndef DDPCHECK_EMU_WORKER_H
#define DDPCHECK_EMU_WORKER_H

struct emu_stream;

/* Starts the stream's thread; called with stream->lock held. The thread is detached and ends when
 * the stream is closed and drained: a stream that hangs must not keep exit() from ending.
 * Returns 0 or cudaErrorMemoryAllocation. */
int emu_worker_start(struct emu_stream *stream);

#endif
