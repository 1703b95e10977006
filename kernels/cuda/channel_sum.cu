/* channel_sum.cu: one block adds up one channel. */
#include "channel_sum.cuh"

#include "launch.cuh"

__global__ void ddpcheck_channel_sum(int n, int channels, int pixels, const float *x, float *sum)
{
    const int channel = blockIdx.x;
    const size_t count = (size_t)n * pixels;
    float mine = 0;

    for (size_t i = threadIdx.x; i < count; i += blockDim.x)
        mine += x[(i / pixels * channels + channel) * pixels + i % pixels];
    mine = block_sum(mine);
    if (threadIdx.x == 0)
        sum[channel] += mine;
}

cudaError_t channel_sum(int n, int channels, int pixels, const float *x, float *sum,
                        cudaStream_t stream)
{
    if (!sum)
        return cudaSuccess;
    return launch(ddpcheck_channel_sum, channels, BLOCK, stream, n, channels, pixels, x, sum);
}
