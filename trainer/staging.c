/* staging.c: copies a bucket, reduces the copy and copies it back. */
#include "trainer/staging.h"

#include "trainer/check.h"

static size_t staged_bytes(const struct tensor *gradients)
{
    return tensor_count(gradients) * sizeof(float);
}

float *staging_open(const struct tensor *gradients)
{
    cudaStream_t compute = tensor_device(gradients)->stream;
    void *copy;
    CHECK_CUDA(cudaMallocAsync(&copy, staged_bytes(gradients), compute));
    CHECK_CUDA(cudaMemcpyAsync(copy, tensor_data(gradients), staged_bytes(gradients),
                               cudaMemcpyDeviceToDevice, compute));
    return copy;
}

void staging_close(float *copy, struct tensor *gradients, const struct communicator *communicator,
                   cudaStream_t last_user)
{
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(gradients), copy, staged_bytes(gradients),
                               cudaMemcpyDeviceToDevice, communicator->stream));
    CHECK_CUDA(cudaFreeAsync(copy, last_user));
}
