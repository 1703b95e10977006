/* host_runtime.c: the few functions of CUDA's runtime that the tests use beside launches, over host
 * memory. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const int runtime_is_host;
const int runtime_is_host = 1; /* cases_payload.c: device memory can be protected as any */

const char *cudaGetErrorString(cudaError_t status)
{
    static _Thread_local char text[40];

    snprintf(text, sizeof text, "CUDA error %d", (int)status);
    return text;
}

/* No driver: kernels_explain has nothing to say. */
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 0;
    return cudaErrorUnknown;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

cudaError_t cudaGetDevice(int *device)
{
    return cudaDriverGetVersion(device);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)attribute, (void)device;
    return cudaDriverGetVersion(value);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    *pointer = malloc(bytes);
    return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *pointer)
{
    free(pointer);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    *stream = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}
