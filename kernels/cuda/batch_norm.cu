/* batch_norm.cu: one block per channel, so that a channel's sums need no second launch. */
#include "launch.cuh"

/* Where element i of the channel lies in x[n][channels][pixels]. */
static __device__ inline size_t place(size_t i, int channel, int channels, int pixels)
{
    return (i / pixels * channels + channel) * pixels + i % pixels;
}

__global__ void ddpcheck_batch_norm_forward(int n, int c, int pixels, const float *x, const float *gamma,
                                            const float *beta, float *running_mean, float *running_var,
                                            float momentum, float epsilon, float *mean, float *inv_std, float *y)
{
    const int channel = blockIdx.x;
    const size_t count = (size_t)n * pixels;
    float sum = 0, squares = 0;

    for (size_t i = threadIdx.x; i < count; i += blockDim.x)
        sum += x[place(i, channel, c, pixels)];
    const float center = block_sum(sum) / (float)count;
    /* A second pass: the difference of two large sums would lose a small variance. */
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
        const float distance = x[place(i, channel, c, pixels)] - center;
        squares += distance * distance;
    }
    squares = block_sum(squares);
    const float scale = 1 / sqrtf(squares / (float)count + epsilon);
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
        const size_t at = place(i, channel, c, pixels);
        y[at] = (x[at] - center) * scale * gamma[channel] + beta[channel];
    }
    if (threadIdx.x == 0) {
        const float unbiased = squares / (float)(count > 1 ? count - 1 : 1);
        mean[channel] = center;
        inv_std[channel] = scale;
        running_mean[channel] += momentum * (center - running_mean[channel]);
        running_var[channel] += momentum * (unbiased - running_var[channel]);
    }
}

__global__ void ddpcheck_batch_norm_evaluate(int n, int c, int pixels, const float *x, const float *gamma,
                                             const float *beta, const float *running_mean, const float *running_var,
                                             float epsilon, float *y)
{
    const size_t count = (size_t)n * c * pixels;

    for (size_t i = element_first(); i < count; i += element_stride()) {
        const int channel = (int)(i / pixels % c);
        y[i] = (x[i] - running_mean[channel]) / sqrtf(running_var[channel] + epsilon) * gamma[channel] +
               beta[channel];
    }
}

__global__ void ddpcheck_batch_norm_backward(int n, int c, int pixels, const float *x, const float *gamma,
                                             const float *mean, const float *inv_std, const float *g_y, float *g_x,
                                             float *g_gamma, float *g_beta)
{
    const int channel = blockIdx.x;
    const size_t count = (size_t)n * pixels;
    const float center = mean[channel], scale = inv_std[channel];
    float sum = 0, product = 0;

    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
        const size_t at = place(i, channel, c, pixels);
        sum += g_y[at];
        product += g_y[at] * (x[at] - center) * scale;
    }
    sum = block_sum(sum);
    product = block_sum(product);
    const float mean_sum = sum / (float)count, mean_product = product / (float)count;
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
        const size_t at = place(i, channel, c, pixels);
        g_x[at] = gamma[channel] * scale * (g_y[at] - mean_sum - (x[at] - center) * scale * mean_product);
    }
    if (threadIdx.x == 0) {
        g_gamma[channel] += product;
        g_beta[channel] += sum;
    }
}

static bool sizes_are_valid(int n, int c, int pixels)
{
    return n > 0 && c > 0 && pixels > 0;
}

cudaError_t kernels_batch_norm_forward(int n, int c, int pixels, const float *x, const float *gamma,
                                       const float *beta, float *running_mean, float *running_var, float momentum,
                                       float epsilon, float *mean, float *inv_std, float *y, cudaStream_t stream)
{
    if (!sizes_are_valid(n, c, pixels))
        return cudaErrorInvalidValue;
    return launch(ddpcheck_batch_norm_forward, c, BLOCK, stream, n, c, pixels, x, gamma, beta, running_mean,
                  running_var, momentum, epsilon, mean, inv_std, y);
}

cudaError_t kernels_batch_norm_evaluate(int n, int c, int pixels, const float *x, const float *gamma,
                                        const float *beta, const float *running_mean, const float *running_var,
                                        float epsilon, float *y, cudaStream_t stream)
{
    if (!sizes_are_valid(n, c, pixels))
        return cudaErrorInvalidValue;
    return launch(ddpcheck_batch_norm_evaluate, blocks_for((size_t)n * c * pixels, BLOCK), BLOCK, stream, n, c,
                  pixels, x, gamma, beta, running_mean, running_var, epsilon, y);
}

cudaError_t kernels_batch_norm_backward(int n, int c, int pixels, const float *x, const float *gamma,
                                        const float *mean, const float *inv_std, const float *g_y, float *g_x,
                                        float *g_gamma, float *g_beta, cudaStream_t stream)
{
    if (!sizes_are_valid(n, c, pixels))
        return cudaErrorInvalidValue;
    return launch(ddpcheck_batch_norm_backward, c, BLOCK, stream, n, c, pixels, x, gamma, mean, inv_std, g_y, g_x,
                  g_gamma, g_beta);
}
