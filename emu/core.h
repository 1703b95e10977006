/* core.h: the emulated machine that libcudart, libcuda, libcupti and libnccl of emu/ share.
 *
 * DDPCHECK_EMU_DEVICES (default 1) virtual devices in each process, of DDPCHECK_EMU_MEMORY bytes
 * each ("16G"; default 8G); CUDA_VISIBLE_DEVICES picks from them. Device memory is host memory that
 * belongs to a device; a stream is a thread with a FIFO of work. The libraries of emu/ are thin
 * skins over this one (libddpcheck_emu.so), so that a stream of the runtime API is a stream of the
 * driver API and of NCCL. Only emu/ may include this. */
#ifndef DDPCHECK_EMU_CORE_H
#define DDPCHECK_EMU_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_stream;

/* What a piece of work returns: 0 or a cudaError_t, which becomes the device's sticky error. */
typedef int emu_work(void *arg);

int emu_device_count(void);
/* The calling thread's current device. */
int emu_device_current(void);
int emu_device_set(int device);
/* The device's sticky error, 0 if none. */
int emu_device_error(int device);

/* The stream behind a cudaStream_t or CUstream of the calling thread (0 and the special handles
 * cudaStreamLegacy, cudaStreamPerThread included), or NULL for a handle that is no live stream. */
struct emu_stream *emu_stream_find(void *handle);
int emu_stream_device(const struct emu_stream *stream);
/* True while the stream is captured into a graph: emu_stream_push then records the work as a graph
 * node. */
bool emu_stream_is_capturing(const struct emu_stream *stream);

/* Appends work, in order with everything before it on the stream (default-stream rules included).
 * `name` is for messages. The arg is the work's own: release (may be NULL) is called on it once it
 * will not run again (after the run, or when a graph that holds it is destroyed).
 * Returns 0 or a cudaError_t; then nothing was taken over and release is not called. */
int emu_stream_push(struct emu_stream *stream, const char *name, emu_work *run, void *arg,
                    void (*release)(void *));

/* Which memory `pointer` lies in. Returns false if it is none that the emulated machine knows
 * (pageable host memory). */
struct emu_memory {
    uintptr_t base;
    size_t bytes;
    int device; /* -1: pinned host memory */
    bool managed;
};
bool emu_memory_find(const void *pointer, struct emu_memory *memory);
/* True if work on `device` may touch [pointer, pointer+bytes): own memory, a peer that was enabled,
 * pinned or managed memory. */
bool emu_memory_reachable(int device, const void *pointer, size_t bytes);

/* Notes that work named `name` does nothing here. Prints one line for the whole job, and appends
 * each name to the file that DDPCHECK_EMU_NOT_COMPUTED names; without it, a line per process. */
void emu_not_computed(const char *name);
/* Prints "ddpcheck emu: NAME is not supported (why)" once per name on stderr. */
void emu_unsupported(const char *name, const char *why);

#endif
