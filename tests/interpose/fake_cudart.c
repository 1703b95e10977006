/* fake_cudart.c: a CUDA runtime and driver whose work is done at once. Device memory is host memory
 * with a list of what was allocated; progress writes arrive immediately. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

enum { ALLOCATIONS = 4096 };

static struct {
    char *base;
    size_t bytes;
    int device;
} allocation[ALLOCATIONS];
static int allocations;
static _Thread_local int current;

static int questions;

/* How often something was asked that would initialise a real CUDA. */
int cuda_fake_questions(void);
int cuda_fake_questions(void)
{
    return questions;
}

static _Thread_local cudaError_t last_error;

/* The runtime keeps a call's error until the program asks for it. */
static cudaError_t failed(cudaError_t error)
{
    return last_error = error;
}

cudaError_t cudaGetDevice(int *device)
{
    questions++;
    if (getenv("FAKE_FAILING_QUERIES"))
        return failed(cudaErrorUnknown);
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    const char *unavailable = getenv("FAKE_UNAVAILABLE_DEVICE");
    if (unavailable && atoi(unavailable) == device)
        return failed(cudaErrorDevicesUnavailable);
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    questions++;
    if (getenv("FAKE_FAILING_QUERIES"))
        return failed(cudaErrorUnknown);
    *count = 4;
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
    questions++;
    return last_error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    if (bytes < 13)
        return cudaErrorInvalidValue;
    strcpy(text, "0000:00:00.0");
    text[6] = (char)('0' + device);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    if (allocations == ALLOCATIONS)
        return cudaErrorMemoryAllocation;
    *pointer = malloc(bytes);
    allocation[allocations].base = *pointer;
    allocation[allocations].bytes = bytes;
    allocation[allocations++].device = current;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer)
{
    for (int i = 0; i < allocations; i++)
        if (allocation[i].base == pointer)
            allocation[i] = allocation[--allocations];
    free(pointer);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    *stream = malloc(16);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = malloc(16);
    return cudaSuccess;
}

cudaError_t cudaFuncGetName(const char **name, const void *function)
{
    *name = function; /* the tests give a kernel's name as its function */
    return cudaSuccess;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    *function = (cudaFunction_t)(uintptr_t)symbol;
    return cudaSuccess;
}

CUresult cuDriverGetVersion(int *version)
{
    questions++;
    *version = 13010;
    return CUDA_SUCCESS;
}

/* Kernels of the tests: two pointers, a number, a struct of two words, one of a word, a number. */
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    static const size_t offsets[] = {0, 8, 16, 24, 40, 48}, sizes[] = {8, 8, 4, 16, 8, 8};
    (void)function;
    if (index >= 6)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = offsets[index];
    *bytes = sizes[index];
    return CUDA_SUCCESS;
}

/* As a runtime whose struct is longer than that of the headers here, as 13's is beside 12's. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    enum { LONGER = 256 };
    if (getenv("FAKE_FAILING_QUERIES"))
        return failed(cudaErrorInvalidValue);
    memset((void *)attributes, 0xff, LONGER);
    attributes->type = cudaMemoryTypeUnregistered;
    for (int i = 0; i < allocations; i++)
        if ((char *)pointer >= (char *)allocation[i].base &&
            (char *)pointer < (char *)allocation[i].base + allocation[i].bytes) {
            attributes->type = cudaMemoryTypeDevice;
            attributes->device = allocation[i].device;
        }
    return cudaSuccess;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *wanted, void **values,
                                CUdeviceptr pointer)
{
    if (getenv("FAKE_OLD_DRIVER"))
        return CUDA_ERROR_NOT_SUPPORTED;
    for (int i = 0; i < allocations; i++) {
        const char *base = allocation[i].base;
        if ((char *)pointer < base || (char *)pointer >= base + allocation[i].bytes || count != 6)
            continue;
        *(CUmemorytype *)values[0] = CU_MEMORYTYPE_DEVICE;
        *(int *)values[1] = allocation[i].device;
        *(unsigned *)values[2] = 0;
        *(CUdeviceptr *)values[3] = (CUdeviceptr)base;
        *(size_t *)values[4] = allocation[i].bytes;
        *(unsigned *)values[5] = 1;
        return wanted[0] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    (void)bytes;
    return (uintptr_t)pointer % 4096 || !(flags & CU_MEMHOSTREGISTER_PORTABLE)
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *pointer, unsigned flags)
{
    (void)flags;
    *device = (CUdeviceptr)pointer;
    return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                              unsigned flags)
{
    (void)stream, (void)flags;
    if (getenv("FAKE_NO_WRITES"))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (getenv("FAKE_FAILING_WRITES"))
        return (CUresult)atoi(getenv("FAKE_FAILING_WRITES"));
    *(volatile uint64_t *)address = value;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = getenv("FAKE_CAPTURE") ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                     : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = malloc(16);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)event, (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    (void)flags;
    *graph = malloc(16);
    return cudaSuccess;
}

/* Of a program that wants to be called while it waits. */
__attribute__((weak)) void fake_waits(void);

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    if (fake_waits)
        fake_waits();
    return cudaSuccess;
}
