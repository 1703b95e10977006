/* worker.h: the thread behind a stream. */
#ifndef DDPCHECK_EMU_WORKER_H
#define DDPCHECK_EMU_WORKER_H

struct emu_stream;

/* Starts the stream's thread; called with stream->lock held. The thread is detached and ends when
 * the stream is closed and drained: a stream that hangs must not keep exit() from ending.
 * Returns 0 or cudaErrorMemoryAllocation. */
int emu_worker_start(struct emu_stream *stream);

/* A host function as work on a stream. It may not call CUDA. */

struct emu_stream;

/* Either `function`, or `callback`, which is also given `stream` as the program named it and an
 * error of 0. */
struct emu_host_call {
    void (*function)(void *data);
    void (*callback)(void *stream, int error, void *data);
    void *stream, *data;
};

/* Returns a cudaError_t. */
int emu_host_call(struct emu_stream *stream, const struct emu_host_call *call, const char *name);

#endif
