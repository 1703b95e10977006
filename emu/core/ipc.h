/* ipc.h: device memory that several processes of the machine use (cudaIpcGetMemHandle).
 *
 * The first handle of an allocation moves it, at its address, into a memory file; another process
 * maps the file through /proc/PID/fd, so the process that made the memory must live until then, as
 * with CUDA. */
#ifndef DDPCHECK_EMU_IPC_H
#define DDPCHECK_EMU_IPC_H

#include <stddef.h>

enum { EMU_IPC_HANDLE_BYTES = 64 }; /* CUDA's */

/* The handle of the allocation that begins at `pointer`; waits for the device. Returns 0,
 * cudaErrorInvalidValue, cudaErrorMemoryAllocation or the device's error. */
int emu_ipc_export(void *pointer, void *handle);
/* Maps the allocation of another process. `reach`: the current device may touch it though it
 * belongs to another. Returns 0, cudaErrorInvalidValue, cudaErrorInvalidResourceHandle (this
 * process made it, or it is no handle), cudaErrorMapBufferObjectFailed. */
int emu_ipc_open(const void *handle, int reach, void **pointer);
/* Ends it, after what the current device is given was done. Returns 0, cudaErrorInvalidValue or the
 * device's error. */
int emu_ipc_close(void *pointer);

#endif
