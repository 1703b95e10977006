#include "trainer/staging.h"

#include "trainer/check.h"

static size_t bytes_of(const struct tensor *gradients)
{
    return tensor_count(gradients) * sizeof(float);
}

float *staging_open(const struct tensor *gradients)
{
    cudaStream_t compute = tensor_device(gradients)->stream;
    void *copy;
    CHECK_CUDA(cudaMallocAsync(&copy, bytes_of(gradients), compute));
    CHECK_CUDA(cudaMemcpyAsync(copy, tensor_data(gradients), bytes_of(gradients),
                               cudaMemcpyDeviceToDevice, compute));
    return copy;
}

void staging_close(float *copy, struct tensor *gradients, const struct communicator *communicator,
                   cudaStream_t last_user)
{
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(gradients), copy, bytes_of(gradients),
                               cudaMemcpyDeviceToDevice, communicator->stream));
    CHECK_CUDA(cudaFreeAsync(copy, last_user));
}
