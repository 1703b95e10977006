/* recording.h: the functions that record a row of calls.def, before or after the real call. Each is
 * called by one kind of wrapper, with the in-shim flag set; `result` is what the real function
 * returned. */
#ifndef DDPCHECK_RECORDING_H
#define DDPCHECK_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include "abi/nccl_later.h"
#include "interpose/record/call.h"
#include "interpose/memory/kernels.h"
#include "interpose/progress/progress.h"
#include "lib/trace/unseen.h"

/* Collectives and point to point (operations.c). */
enum operation_way { WAY_COLLECTIVE, WAY_SEND, WAY_RECV, WAY_SIGNAL, WAY_WAIT };

struct operation_arguments {
    const void *send, *recv;
    size_t count;
    int type, redop, root;
    enum operation_way way;
    int32_t signal;                 /* of one-sided calls, as in their ENTER */
    uint64_t window, offset;        /* of a put: where to */
    const ncclCollConfig_t *config; /* NULL: none */
};
#define SIGNAL_OF(index, context) ((int32_t)(((uint32_t)(context) << 16) | ((index)&0xffff)))

void operation_enter(struct recorded_call *call, ncclComm_t comm, cudaStream_t stream,
                     const struct operation_arguments *operation);
void operation_leave(struct recorded_call *call, ncclResult_t result);
/* Emits what the configuration sets (collective_config.c), before the operation's own record. */
void collective_config_record(struct shim_thread *thread, const ncclCollConfig_t *config);
/* Several operations as one launch (several.c): a wait for each of `count` signals; a send to and a
 * receive from each rank, of as many elements as the arrays say, at these elements of the buffers.
 */
struct all_to_all_v {
    const void *send, *recv;
    const size_t *send_count, *send_offset, *recv_count, *recv_offset;
    ncclDataType_t type;
};
void wait_signal_enter(struct recorded_call *call, ncclComm_t comm, cudaStream_t stream, int count,
                       const ncclWaitSignalDesc_t *signals);
void all_to_all_v_enter(struct recorded_call *call, ncclComm_t comm, cudaStream_t stream,
                        const struct all_to_all_v *what);
void several_leave(struct recorded_call *call, ncclResult_t result);

/* Groups (groups.c). */
void group_started(struct recorded_call *call, ncclResult_t result);
void group_end_enter(struct recorded_call *call);
void group_end_leave(struct recorded_call *call, ncclResult_t result);

/* Communicators (communicators.c). The id of a communicator made of unique ids: */
uint64_t unique_id_hash(const ncclUniqueId *ids, int count);
void comm_init_enter(struct recorded_call *call, int nranks, int rank, const ncclUniqueId *ids,
                     int count, const ncclConfig_t *config);
void comm_split_enter(struct recorded_call *call, ncclComm_t parent, int color, int key,
                      const ncclConfig_t *config);
void comm_shrink_enter(struct recorded_call *call, ncclComm_t parent, const int *excluded,
                       int count, const ncclConfig_t *config, int flags);
void comm_unique_id_enter(struct recorded_call *call, ncclComm_t comm);
void comm_unique_id_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t comm,
                          ncclUniqueId *id);
void comm_grow_enter(struct recorded_call *call, ncclComm_t handle, int nranks,
                     const ncclUniqueId *id, int rank, const ncclConfig_t *config);
void comm_grow_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t *grown);
void comm_init_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t *comm);
void comm_init_all_enter(struct recorded_call *call, int count, const int *devices);
void comm_init_all_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t *comms,
                         int count, const int *devices);
/* A call on a communicator; pointer and bytes as far as it has them. */
void comm_enter(struct recorded_call *call, ncclComm_t comm, const void *pointer, size_t bytes);
/* A window is registered: `flags` are NCCL_WIN_*. */
void comm_window_enter(struct recorded_call *call, ncclComm_t comm, const void *pointer,
                       size_t bytes, int flags);
void comm_window_leave(struct recorded_call *call, ncclResult_t result, const ncclWindow_t *window);
/* ncclDevCommCreate: what its kernels do is not seen. */
void device_comm_leave(struct recorded_call *call, ncclResult_t result);
/* `flags` as given to ncclCommSuspend. */
void comm_suspend_enter(struct recorded_call *call, ncclComm_t comm, int flags);
void comm_destroy_enter(struct recorded_call *call, ncclComm_t comm);
void comm_destroy_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t comm);
void comm_finalize_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t comm);
void comm_query_enter(struct recorded_call *call);
void comm_plain_leave(struct recorded_call *call, ncclResult_t result, uint64_t handle);
void comm_async_error(struct recorded_call *call, ncclResult_t result, ncclComm_t comm,
                      const ncclResult_t *error);

void redop_create_enter(struct recorded_call *call, const void *scalar, ncclDataType_t type,
                        ncclScalarResidence_t residence, ncclComm_t comm);
void redop_create_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t comm,
                        const ncclRedOp_t *op);
void redop_destroy_enter(struct recorded_call *call, ncclRedOp_t op, ncclComm_t comm);
/* A communicator grew that can't be identified: neither its parent nor its id is known. */
void notice_grown(struct shim_thread *thread, ncclResult_t result, const ncclComm_t *grown);
void notice_blind(struct recorded_call *call, ncclResult_t result, enum unseen kind,
                  const char *text);

/* What a call wrote to *handle, if it succeeded. */
static inline uint64_t handle_of(ncclResult_t result, void *const *handle)
{
    return result == ncclSuccess && handle ? (uintptr_t)*handle : 0;
}

/* Host waits, streams, events, memory, copies, graphs (runtime.c). */
struct wait_arguments {
    uint64_t event, dst, src, bytes, kind, dst_pitch, src_pitch, height;
};
struct copy_arguments {
    uint64_t dst, src, bytes, kind, dst_pitch, src_pitch, height;
};

void wait_enter(struct recorded_call *call, cudaStream_t stream,
                const struct wait_arguments *arguments);
void wait_leave(struct recorded_call *call, cudaError_t result);
/* The host waits for a context, which may be another device's than the thread's; NULL: its own. */
void context_wait_enter(struct recorded_call *call, CUcontext context);
void context_wait_leave(struct recorded_call *call, cudaError_t result);
void wait_free_leave(struct recorded_call *call, cudaError_t result,
                     const struct wait_arguments *arguments);
void stream_created(struct recorded_call *call, cudaError_t result, const cudaStream_t *stream,
                    unsigned flags);
void stream_destroyed(struct recorded_call *call, cudaError_t result, cudaStream_t stream);
void event_created(struct recorded_call *call, cudaError_t result, const cudaEvent_t *event,
                   unsigned flags);
void point_event(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                 cudaEvent_t event, unsigned flags);
void query_answered(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                    cudaEvent_t event);
void peer_access_changed(struct recorded_call *call, cudaError_t result, int peer);

/* Memory (memory.c). */
void memory_enter(struct recorded_call *call, const void *pointer, size_t bytes);
void memory_made_leave(struct recorded_call *call, ncclResult_t result, void *const *pointer,
                       size_t bytes);
void memory_free_leave(struct recorded_call *call, ncclResult_t result);
void memory_allocated(struct recorded_call *call, cudaError_t result, void *const *pointer,
                      size_t bytes, enum memory_type type, cudaStream_t stream);
/* Device memory of ROWS rows; *PITCH bytes each once the call has succeeded. */
void memory_pitched(struct recorded_call *call, cudaError_t result, void *const *pointer,
                    const size_t *pitch, size_t rows);
void memory_registered(struct recorded_call *call, cudaError_t result, const void *pointer,
                       size_t bytes);
void memory_released(struct recorded_call *call, cudaError_t result, const void *pointer,
                     enum memory_type type, cudaStream_t stream);
/* A piece of reserved addresses got or lost its memory. */
void memory_mapped(struct recorded_call *call, cudaError_t result, uint64_t pointer, size_t bytes);
void ipc_handle_made(struct recorded_call *call, cudaError_t result,
                     const cudaIpcMemHandle_t *handle, uint64_t pointer);
void ipc_handle_opened(struct recorded_call *call, cudaError_t result, void *const *pointer,
                       const cudaIpcMemHandle_t *handle);

/* An asynchronous copy; a host wait where the host has to wait. */
void copy_enter(struct recorded_call *call, cudaStream_t stream,
                const struct copy_arguments *arguments);
void copy_leave(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                const struct copy_arguments *arguments);
void point_copy(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                const struct copy_arguments *arguments);

/* Copies of more than one row, to symbols, and what else writes memory (copies.c). */
void copy_3d_enter(struct recorded_call *call, const struct cudaMemcpy3DParms *p);
void copy_3d(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
             const struct cudaMemcpy3DParms *p);
void copy_3d_peer(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                  const struct cudaMemcpy3DPeerParms *p);
void memset_3d_enter(struct recorded_call *call, const struct cudaPitchedPtr *pitched, int value,
                     const struct cudaExtent *extent);
void memset_3d(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
               const struct cudaPitchedPtr *pitched, int value, const struct cudaExtent *extent);
uint64_t symbol_address(const void *symbol, size_t offset);
void driver_copy_2d_enter(struct recorded_call *call, const CUDA_MEMCPY2D *copy);
void driver_copy_3d_enter(struct recorded_call *call, const CUDA_MEMCPY3D *copy);
void driver_copy_2d(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                    const CUDA_MEMCPY2D *copy);
void driver_copy_3d(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                    const CUDA_MEMCPY3D *copy);
void driver_mem_ops(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                    const CUstreamBatchMemOpParams *operation, unsigned count);

/* Host functions (host_functions.c): the stream gets ours, which calls the program's. */
void host_function_prepare(struct recorded_call *call, cudaStream_t stream, cudaHostFn_t *function,
                           void **argument);
void callback_prepare(struct recorded_call *call, cudaStream_t stream,
                      cudaStreamCallback_t *callback, void **argument);
void host_function_launched(struct recorded_call *call, cudaError_t result, cudaStream_t stream);

/* Capture and graphs (graph_calls.c). */
void capture_began(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                   cudaGraph_t graph);
void capture_ending(struct recorded_call *call, cudaStream_t stream);
void capture_ended(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                   const cudaGraph_t *graph);
void graph_instantiated(struct recorded_call *call, cudaError_t result, cudaGraph_t graph,
                        const cudaGraphExec_t *exec);
void graph_updated(struct recorded_call *call, cudaError_t result, cudaGraphExec_t exec,
                   cudaGraph_t graph);
void graph_cloned(struct recorded_call *call, cudaError_t result, cudaGraph_t original,
                  const cudaGraph_t *clone);
void graph_destroyed(struct recorded_call *call, cudaError_t result, cudaGraph_t graph);
void graph_exec_destroyed(struct recorded_call *call, cudaError_t result, cudaGraphExec_t exec);
void graph_launch_enter(struct recorded_call *call, cudaGraphExec_t exec, cudaStream_t stream);
void graph_launch_leave(struct recorded_call *call, cudaError_t result, cudaGraphExec_t exec,
                        cudaStream_t stream);

/* Kernels (launch.c). */
void kernel_prepare(struct recorded_call *call, const void *function, enum kernel_kind kind,
                    dim3 grid, void **arguments);
void kernel_prepare_by_config(struct recorded_call *call, const void *function,
                              const cudaLaunchConfig_t *config, void **arguments);
void kernel_launched(struct recorded_call *call, cudaError_t result, dim3 grid, dim3 block,
                     cudaStream_t stream);
void kernel_launched_by_config(struct recorded_call *call, cudaError_t result,
                               const cudaLaunchConfig_t *config);
/* `extra` holds the arguments in one piece where `arguments` is NULL (cuLaunchKernel). */
void driver_prepare(struct recorded_call *call, CUfunction function, dim3 grid, void **arguments,
                    void **extra);
void driver_prepare_by_config(struct recorded_call *call, CUfunction function,
                              const CUlaunchConfig *config, void **arguments, void **extra);
void driver_launched_by_config(struct recorded_call *call, cudaError_t result,
                               const CUlaunchConfig *config);

#endif
