/* stub.c: CUDA's runtime, its driver and NCCL as far as calls.c and the shim call them, for one
 * device and communicators of one rank: each function does nothing and succeeds. So a loop of calls
 * on these libraries costs what the shim costs. All three libraries are made of this file; which
 * names each exports says its version script. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* nccl.h has ncclGroupStart() */

#define SUCCEEDS(type, name, parameters) \
    type name parameters                 \
    {                                    \
        return (type)0;                  \
    }
#define RUNTIME(name, ...) SUCCEEDS(cudaError_t, name, (__VA_ARGS__))
#define DRIVER(name, ...)  SUCCEEDS(CUresult, name, (__VA_ARGS__))
#define NCCL(name, ...)    SUCCEEDS(ncclResult_t, name, (__VA_ARGS__))
#define GIVES(result, name, type, value) \
    result name(type *given)             \
    {                                    \
        *given = (value);                \
        return (result)0;                \
    }

enum { RANGE_BYTES = 32 << 20 }; /* of what memory is a part of */
static char made;                /* what handles point to */

RUNTIME(cudaSetDevice, int device)
RUNTIME(cudaGetLastError, void)
RUNTIME(cudaPeekAtLastError, void)
RUNTIME(cudaStreamSynchronize, cudaStream_t stream)
RUNTIME(cudaStreamQuery, cudaStream_t stream)
RUNTIME(cudaStreamWaitEvent, cudaStream_t stream, cudaEvent_t event, unsigned flags)
RUNTIME(cudaEventRecord, cudaEvent_t event, cudaStream_t stream)
RUNTIME(cudaEventQuery, cudaEvent_t event)
RUNTIME(cudaMemsetAsync, void *memory, int value, size_t bytes, cudaStream_t stream)
RUNTIME(cudaMemcpyAsync, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
        cudaStream_t stream)
GIVES(cudaError_t, cudaGetDevice, int, 0)
GIVES(cudaError_t, cudaGetDeviceCount, int, 1)
GIVES(cudaError_t, cudaRuntimeGetVersion, int, CUDART_VERSION)

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    *stream = (cudaStream_t)&made;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = (cudaEvent_t)&made;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    *memory = bytes <= RANGE_BYTES ? aligned_alloc(RANGE_BYTES, RANGE_BYTES) : NULL;
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

/* All memory is the device's. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *found, const void *pointer)
{
    *found = (struct cudaPointerAttributes){.type = cudaMemoryTypeDevice,
                                            .devicePointer = (void *)(uintptr_t)pointer};
    return cudaSuccess;
}

DRIVER(cuInit, unsigned flags)
DRIVER(cuStreamWriteValue64_v2, CUstream stream, CUdeviceptr address, cuuint64_t value,
       unsigned flags)
GIVES(CUresult, cuDriverGetVersion, int, CUDA_VERSION)
GIVES(CUresult, cuCtxGetCurrent, CUcontext, (CUcontext)&made)
GIVES(CUresult, cuCtxGetDevice, CUdevice, 0)

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = 1;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    *flags = CU_STREAM_NON_BLOCKING;
    return CUDA_SUCCESS;
}

DRIVER(cuMemHostRegister_v2, void *memory, size_t bytes, unsigned flags)

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pointer, void *memory, unsigned flags)
{
    *pointer = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

static void give_attribute(CUpointer_attribute attribute, void *value, CUdeviceptr pointer)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = 0;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = 0;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = pointer & ~(CUdeviceptr)(RANGE_BYTES - 1);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = RANGE_BYTES;
        break;
    default:
        break;
    }
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr pointer)
{
    for (unsigned i = 0; i < count; i++)
        give_attribute(attributes[i], values[i], pointer);
    return CUDA_SUCCESS;
}

NCCL(ncclGroupStart, void)
NCCL(ncclGroupEnd, void)
NCCL(ncclCommDestroy, ncclComm_t comm)
NCCL(ncclAllReduce, const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
     ncclComm_t comm, cudaStream_t stream)
NCCL(ncclBroadcast, const void *from, void *to, size_t count, ncclDataType_t type, int root,
     ncclComm_t comm, cudaStream_t stream)
NCCL(ncclSend, const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
     cudaStream_t stream)
NCCL(ncclRecv, void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
     cudaStream_t stream)
GIVES(ncclResult_t, ncclGetVersion, int, NCCL_VERSION_CODE)

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    for (int i = 0; i < count; i++)
        comms[i] = (ncclComm_t)&made;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
    *count = 1;
    return ncclSuccess;
}

static ncclResult_t give_zero(ncclComm_t comm, int *value)
{
    *value = 0;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
    return give_zero(comm, rank);
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
    return give_zero(comm, device);
}
