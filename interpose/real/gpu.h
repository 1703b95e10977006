/* gpu.h: queries of the CUDA runtime and driver that change nothing the program can see. */
#ifndef DDPCHECK_GPU_H
#define DDPCHECK_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "interpose/shim/thread.h"

/* A runtime call that fails leaves its error for the program's next cudaGetLastError. So: query
 * only if gpu_may_query, and after a failure remove the error again. */
bool gpu_may_query(void);
void gpu_forget_error(void);

/* The thread's current CUDA device; CUDA is queried if it is not known and the program uses CUDA.
 */
int32_t gpu_thread_device(struct shim_thread *thread);

/* Hash of what distinguishes a GPU from all others: its UUID (on MIG that of the instance), else
 * the host's boot id and its PCI address. 0 if neither can be had. */
uint64_t gpu_identity(int device);

/* Calls that allocate, register or query would break a capture that any thread has under way,
 * unless this thread's mode says that they do not belong to it (cuThreadExchangeStreamCaptureMode).
 * Around such calls of the shim's own: relax gives what restore needs. */
enum { GPU_MODE_UNKNOWN = -1 };
int gpu_relax_captures(void);
void gpu_restore_captures(int before);

/* True while work given to the stream is captured into a graph instead of running. */
bool gpu_is_capturing(cudaStream_t stream);

/* The number of the capture under way, the same for all streams that joined it; 0: none. */
uint64_t gpu_capture_id(cudaStream_t stream);

/* RECORD_FLAG_CAPTURE for such a stream, else 0. Cheap while no capture is open that the shim knows
 * of. */
uint8_t gpu_capture_flag(cudaStream_t stream);

/* The thread's context. A thread that made no runtime call so far has none: the runtime binds that
 * of `device`, the thread's current one, when it is set. NULL if that fails. */
CUcontext gpu_current_context(int device);

/* Makes `device` the thread's current one, with its context. Returns true if it was another;
 * gpu_restore_device then goes back. */
bool gpu_switch_device(struct shim_thread *thread, int device);
void gpu_restore_device(struct shim_thread *thread, bool switched);

/* The allocation around a pointer, as notice_buffer describes it. */
struct gpu_memory {
    uint64_t base, bytes;
    int32_t device; /* -1: host */
    uint32_t type;  /* enum memory_type */
};
void gpu_memory_find(uint64_t pointer, struct gpu_memory *memory);

#endif
