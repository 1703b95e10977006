/* batch_norm.cu: one block per channel, so that a channel's sums need no second launch. Threads
 * take WIDTH neighbours at a time: LANES where no group of LANES reaches over the end of a plane
 * (n, channel), else 1. */
#include "lanes.cuh"
#include "launch.cuh"

/* Where element i of the channel lies in x[n][channels][pixels]. */
static __device__ inline size_t place(size_t i, int channel, int channels, int pixels)
{
    return (i / pixels * channels + channel) * pixels + i % pixels;
}

struct forward_arguments {
    int n, c, pixels;
    const float *x, *gamma, *beta;
    float *running_mean, *running_var, momentum, epsilon, *mean, *inv_std, *y;
};

template <int WIDTH> static __device__ inline void forward(const forward_arguments &f)
{
    const int channel = blockIdx.x;
    const size_t count = (size_t)f.n * f.pixels, first = threadIdx.x * WIDTH,
                 step = blockDim.x * WIDTH;
    float sum = 0, squares = 0;

    for (size_t i = first; i < count; i += step) {
        const lanes<const float, WIDTH> x(f.x + place(i, channel, f.c, f.pixels));
        for (int lane = 0; lane < WIDTH; lane++)
            sum += x[lane];
    }
    const float center = block_sum(sum) / (float)count;
    /* A second pass: the difference of two large sums would lose a small variance. */
    for (size_t i = first; i < count; i += step) {
        const lanes<const float, WIDTH> x(f.x + place(i, channel, f.c, f.pixels));
        for (int lane = 0; lane < WIDTH; lane++)
            squares += (x[lane] - center) * (x[lane] - center);
    }
    squares = block_sum(squares);
    const float scale = 1 / sqrtf(squares / (float)count + f.epsilon);
    for (size_t i = first; i < count; i += step) {
        const size_t at = place(i, channel, f.c, f.pixels);
        const lanes<const float, WIDTH> x(f.x + at);
        lanes<float, WIDTH> y(f.y + at);
        for (int lane = 0; lane < WIDTH; lane++)
            y[lane] = (x[lane] - center) * scale * f.gamma[channel] + f.beta[channel];
    }
    if (threadIdx.x == 0) {
        const float unbiased = squares / (float)(count > 1 ? count - 1 : 1);
        f.mean[channel] = center;
        f.inv_std[channel] = scale;
        f.running_mean[channel] += f.momentum * (center - f.running_mean[channel]);
        f.running_var[channel] += f.momentum * (unbiased - f.running_var[channel]);
    }
}

__global__ void ddpcheck_batch_norm_forward(int n, int c, int pixels, const float *x,
                                            const float *gamma, const float *beta,
                                            float *running_mean, float *running_var, float momentum,
                                            float epsilon, float *mean, float *inv_std, float *y)
{
    const forward_arguments f = {n,           c,        pixels,  x,    gamma,   beta, running_mean,
                                 running_var, momentum, epsilon, mean, inv_std, y};

    if (pixels % LANES == 0)
        forward<LANES>(f);
    else
        forward<1>(f);
}

struct evaluate_arguments {
    int n, c, pixels;
    const float *x, *gamma, *beta, *running_mean, *running_var;
    float epsilon, *y;
};

template <int WIDTH> static __device__ inline void evaluate(const evaluate_arguments &e)
{
    const size_t count = (size_t)e.n * e.c * e.pixels;

    for (size_t i = element_first() * WIDTH; i < count; i += element_stride() * WIDTH) {
        const int channel = (int)(i / e.pixels % e.c);
        const float scale = 1 / sqrtf(e.running_var[channel] + e.epsilon);
        const lanes<const float, WIDTH> x(e.x + i);
        lanes<float, WIDTH> y(e.y + i);
        for (int lane = 0; lane < WIDTH; lane++)
            y[lane] = (x[lane] - e.running_mean[channel]) * scale * e.gamma[channel] +
                      e.beta[channel];
    }
}

__global__ void ddpcheck_batch_norm_evaluate(int n, int c, int pixels, const float *x,
                                             const float *gamma, const float *beta,
                                             const float *running_mean, const float *running_var,
                                             float epsilon, float *y)
{
    const evaluate_arguments e = {n,           c,       pixels, x, gamma, beta, running_mean,
                                  running_var, epsilon, y};

    if (pixels % LANES == 0)
        evaluate<LANES>(e);
    else
        evaluate<1>(e);
}

struct backward_arguments {
    int n, c, pixels;
    const float *x, *gamma, *mean, *inv_std, *g_y;
    float *g_x, *g_gamma, *g_beta;
};

template <int WIDTH> static __device__ inline void backward(const backward_arguments &b)
{
    const int channel = blockIdx.x;
    const size_t count = (size_t)b.n * b.pixels, first = threadIdx.x * WIDTH,
                 step = blockDim.x * WIDTH;
    const float center = b.mean[channel], scale = b.inv_std[channel];
    float sum = 0, product = 0;

    for (size_t i = first; i < count; i += step) {
        const size_t at = place(i, channel, b.c, b.pixels);
        const lanes<const float, WIDTH> x(b.x + at), g_y(b.g_y + at);
        for (int lane = 0; lane < WIDTH; lane++) {
            sum += g_y[lane];
            product += g_y[lane] * (x[lane] - center) * scale;
        }
    }
    sum = block_sum(sum);
    product = block_sum(product);
    const float mean_sum = sum / (float)count, mean_product = product / (float)count;
    for (size_t i = first; i < count; i += step) {
        const size_t at = place(i, channel, b.c, b.pixels);
        const lanes<const float, WIDTH> x(b.x + at), g_y(b.g_y + at);
        lanes<float, WIDTH> g_x(b.g_x + at);
        for (int lane = 0; lane < WIDTH; lane++)
            g_x[lane] = b.gamma[channel] * scale *
                        (g_y[lane] - mean_sum - (x[lane] - center) * scale * mean_product);
    }
    if (threadIdx.x == 0) {
        b.g_gamma[channel] += product;
        b.g_beta[channel] += sum;
    }
}

__global__ void ddpcheck_batch_norm_backward(int n, int c, int pixels, const float *x,
                                             const float *gamma, const float *mean,
                                             const float *inv_std, const float *g_y, float *g_x,
                                             float *g_gamma, float *g_beta)
{
    const backward_arguments b = {n, c, pixels, x, gamma, mean, inv_std, g_y, g_x, g_gamma, g_beta};

    if (pixels % LANES == 0)
        backward<LANES>(b);
    else
        backward<1>(b);
}

static bool batch_norm_sizes_are_valid(int n, int c, int pixels)
{
    return n > 0 && c > 0 && pixels > 0;
}

cudaError_t kernels_batch_norm_forward(int n, int c, int pixels, const float *x, const float *gamma,
                                       const float *beta, float *running_mean, float *running_var,
                                       float momentum, float epsilon, float *mean, float *inv_std,
                                       float *y, cudaStream_t stream)
{
    if (!batch_norm_sizes_are_valid(n, c, pixels))
        return cudaErrorInvalidValue;
    return launch(ddpcheck_batch_norm_forward, c, BLOCK, stream, n, c, pixels, x, gamma, beta,
                  running_mean, running_var, momentum, epsilon, mean, inv_std, y);
}

cudaError_t kernels_batch_norm_evaluate(int n, int c, int pixels, const float *x,
                                        const float *gamma, const float *beta,
                                        const float *running_mean, const float *running_var,
                                        float epsilon, float *y, cudaStream_t stream)
{
    if (!batch_norm_sizes_are_valid(n, c, pixels))
        return cudaErrorInvalidValue;
    return launch(ddpcheck_batch_norm_evaluate, blocks_for((size_t)n * c * pixels, BLOCK * LANES),
                  BLOCK, stream, n, c, pixels, x, gamma, beta, running_mean, running_var, epsilon,
                  y);
}

cudaError_t kernels_batch_norm_backward(int n, int c, int pixels, const float *x,
                                        const float *gamma, const float *mean, const float *inv_std,
                                        const float *g_y, float *g_x, float *g_gamma, float *g_beta,
                                        cudaStream_t stream)
{
    if (!batch_norm_sizes_are_valid(n, c, pixels))
        return cudaErrorInvalidValue;
    return launch(ddpcheck_batch_norm_backward, c, BLOCK, stream, n, c, pixels, x, gamma, mean,
                  inv_std, g_y, g_x, g_gamma, g_beta);
}
