#include "tests/emu_nccl/buffers.h"

#include <stdlib.h>
#include <string.h>

#include "tests/emu_nccl/values.h"

void copy(void *to, const void *from, size_t bytes)
{
    CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
    CUDA(cudaStreamSynchronize(NULL));
}

void *buffer_new(ncclDataType_t type, size_t count, fill *values, int rank)
{
    size_t bytes = count * value_bytes(type);
    char *host = malloc(bytes + 1);
    void *buffer;

    CHECK(host);
    memset(host, 0x2a, bytes);
    for (size_t i = 0; values && i < count; i++)
        value_store(type, host, i, values(rank, i));
    CUDA(cudaMalloc(&buffer, bytes ? bytes : 1));
    copy(buffer, host, bytes);
    free(host);
    return buffer;
}

void *buffer_fetch(ncclDataType_t type, const void *buffer, size_t count)
{
    void *host = malloc(count * value_bytes(type) + 1);

    CHECK(host);
    CUDA(cudaMemcpy(host, buffer, count * value_bytes(type), cudaMemcpyDeviceToHost));
    return host;
}

void buffer_free(void *buffer)
{
    CUDA(cudaFree(buffer));
}

void *floats_new(size_t count, float value)
{
    float *host = malloc(count * sizeof(*host) + 1);
    void *buffer;

    CHECK(host);
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    CUDA(cudaMalloc(&buffer, count * sizeof(*host) + 1));
    copy(buffer, host, count * sizeof(*host));
    free(host);
    return buffer;
}

void floats_check(const void *buffer, size_t from, size_t count, float expected)
{
    float *host = buffer_fetch(ncclFloat32, (const float *)buffer + from, count);

    for (size_t i = 0; i < count; i++)
        if (host[i] != expected)
            check_failed(__FILE__, __LINE__, "element %zu is %g, expected %g", from + i,
                         (double)host[i], (double)expected);
    free(host);
}
