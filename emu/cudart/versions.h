/* versions.h: functions whose parameters differ between CUDA 12 and 13. The work is done in
 * versions.c; version12/ and version13/ give it the names and parameters of their release. */
#ifndef DDPCHECK_EMU_VERSIONS_H
#define DDPCHECK_EMU_VERSIONS_H

#include "emu/cudart/call.h"

/* cudaMemAdvise and cudaMemPrefetchAsync for a device, or cudaCpuDeviceId. Managed memory is the
 * host's here, so a hint changes nothing; it is still checked. */
int version_advise(const void *pointer, size_t bytes, int advice, int device);
int version_prefetch(const void *pointer, size_t bytes, int device, cudaStream_t stream);
/* cudaGraphAddNode; all edges are plain ones. */
int version_add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                     size_t count, struct cudaGraphNodeParams *parameters);
/* cudaStreamGetCaptureInfo; what is NULL is not wanted. */
int version_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                         unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                         size_t *count);

#endif
