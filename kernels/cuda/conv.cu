/* conv.cu: convolutions as implicit matrix products (conv_problems.cuh), in plain fp32 or on tensor
 * cores. */
#include "channel_sum.cuh"
#include "conv_problems.cuh"
#include "gemm_tensor.cuh"
#include "math.cuh"

#include <climits>

/* The three passes, multiplied in a format. */
#define CONV_KERNELS(suffix, format)                                                          \
    __global__ void ddpcheck_conv2d_forward##suffix(conv2d c, const float *x, const float *w, \
                                                    const float *bias,                        \
                                                    kernels_activation activation, float *y)  \
    {                                                                                         \
        product_tile<format, TILE>(forward_of(c, x, w, bias, activation, y));                 \
    }                                                                                         \
    __global__ void ddpcheck_conv2d_backward_data##suffix(                                    \
        conv2d c, const float *g_y, const float *w, const float *bias,                        \
        kernels_activation activation, float *g_x)                                            \
    {                                                                                         \
        product_tile<format, TILE>(backward_data_of_layer(c, g_y, w, bias, activation, g_x)); \
    }                                                                                         \
    __global__ void ddpcheck_conv2d_backward_weight##suffix(conv2d c, const float *x,         \
                                                            const float *g_y, float *g_w)     \
    {                                                                                         \
        product_tile<format, WEIGHT_TILE>(backward_weight_of(c, x, g_y, g_w));                \
    }

CONV_KERNELS(, fp32)
CONV_KERNELS(_tf32, tf32)
CONV_KERNELS(_bf16, bf16)

typedef void results_kernel(conv2d, const float *, const float *, const float *, kernels_activation,
                            float *);

static results_kernel *const forward_kernels[] = KERNELS_OF(conv2d_forward);
static results_kernel *const backward_data_kernels[] = KERNELS_OF(conv2d_backward_data);
static void (*const backward_weight_kernels[])(conv2d, const float *, const float *,
                                               float *) = KERNELS_OF(conv2d_backward_weight);

static bool fits_int(int64_t a, int64_t b, int64_t c)
{
    return a * b <= INT_MAX - 2 * TILE && a * b * c <= INT_MAX - 2 * TILE;
}

static bool shape_is_valid(const conv2d *c)
{
    return c->n > 0 && c->c_in > 0 && c->h > 0 && c->w > 0 && c->c_out > 0 && c->k > 0 &&
           c->stride > 0 && c->pad >= 0 && c->y_h > 0 && c->y_w > 0 && fits_int(c->n, c->h, c->w) &&
           fits_int(c->n, c->y_h, c->y_w) && fits_int(c->k, c->k, c->c_in) &&
           fits_int(c->k, c->k, c->c_out);
}

static const kernels_activation as_it_is = {KERNELS_IDENTITY, 0};

cudaError_t kernels_conv2d_forward_activated(const struct conv2d *c, const float *x, const float *w,
                                             const float *bias,
                                             struct kernels_activation activation, float *y,
                                             cudaStream_t stream)
{
    if (!shape_is_valid(c))
        return cudaErrorInvalidValue;
    return launch(forward_kernels[math_set], gemm_grid(TILE, c->c_out, c->n * c->y_h * c->y_w),
                  gemm_threads(TILE), stream, *c, x, w, bias, activation, y);
}

cudaError_t kernels_conv2d_forward(const struct conv2d *c, const float *x, const float *w,
                                   const float *bias, float *y, cudaStream_t stream)
{
    return kernels_conv2d_forward_activated(c, x, w, bias, as_it_is, y, stream);
}

cudaError_t kernels_conv2d_transposed_forward_activated(const struct conv2d *c, const float *x,
                                                        const float *w, const float *bias,
                                                        struct kernels_activation activation,
                                                        float *y, cudaStream_t stream)
{
    if (!shape_is_valid(c))
        return cudaErrorInvalidValue;
    const int rows = (c->h + c->stride - 1) / c->stride,
              columns = (c->w + c->stride - 1) / c->stride;
    return launch(backward_data_kernels[math_set],
                  gemm_grid(TILE, c->c_in, c->n * rows * columns, c->stride * c->stride),
                  gemm_threads(TILE), stream, *c, x, w, bias, activation, y);
}

cudaError_t kernels_conv2d_backward_data(const struct conv2d *c, const float *g_y, const float *w,
                                         float *g_x, cudaStream_t stream)
{
    return kernels_conv2d_transposed_forward_activated(c, g_y, w, nullptr, as_it_is, g_x, stream);
}

cudaError_t kernels_conv2d_transposed_backward_data(const struct conv2d *c, const float *g_y,
                                                    const float *w, float *g_x, cudaStream_t stream)
{
    return kernels_conv2d_forward(c, g_y, w, nullptr, g_x, stream);
}

static cudaError_t weight_gradient(const conv2d *c, const float *x, const float *g_y, float *g_w,
                                   cudaStream_t stream)
{
    if (!shape_is_valid(c))
        return cudaErrorInvalidValue;
    return launch(backward_weight_kernels[math_set],
                  gemm_grid(WEIGHT_TILE, c->c_out, c->c_in * c->k * c->k),
                  gemm_threads(WEIGHT_TILE), stream, *c, x, g_y, g_w);
}

cudaError_t kernels_conv2d_backward_weight(const struct conv2d *c, const float *x, const float *g_y,
                                           float *g_w, float *g_bias, cudaStream_t stream)
{
    const cudaError_t status = weight_gradient(c, x, g_y, g_w, stream);

    return status != cudaSuccess
               ? status
               : channel_sum(c->n, c->c_out, c->y_h * c->y_w, g_y, g_bias, stream);
}

cudaError_t kernels_conv2d_transposed_backward_weight(const struct conv2d *c, const float *x,
                                                      const float *g_y, float *g_w, float *g_bias,
                                                      cudaStream_t stream)
{
    const cudaError_t status = weight_gradient(c, g_y, x, g_w, stream);

    return status != cudaSuccess ? status
                                 : channel_sum(c->n, c->c_in, c->h * c->w, g_y, g_bias, stream);
}
