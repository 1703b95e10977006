// static_runtime.cu: one rank with the CUDA runtime linked in, as nvcc does by default: a kernel,
// copies, a wait.
#include <cstdio>
#include <cuda_runtime.h>
#include <nccl.h>

__global__ void scale(float *values, float factor)
{
    values[threadIdx.x] *= factor;
}

#define TRY(call)                  \
    if (int result_ = (int)(call)) \
    return fprintf(stderr, "line %d: %d\n", __LINE__, result_), 1

int main()
{
    float *values, host[64] = {};
    int device = 0;
    ncclComm_t comm;
    cudaStream_t stream;
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(ncclCommInitAll(&comm, 1, &device));
    TRY(cudaMalloc(
        &values,
        sizeof host)); // what was there before the first call of NCCL's has no record of its own
    TRY(cudaMemcpyAsync(values, host, sizeof host, cudaMemcpyHostToDevice, stream));
    scale<<<1, 64, 0, stream>>>(values, 2);
    TRY(ncclAllReduce(values, values, 64, ncclFloat32, ncclSum, comm, stream));
    TRY(cudaMemsetAsync(values, 0, sizeof host, stream));
    TRY(cudaStreamSynchronize(stream));
    TRY(ncclCommDestroy(comm));
    TRY(cudaFree(values));
    return 0;
}
