/* conv.cu: convolutions as implicit matrix products: the matrix of image patches is never stored, its
 * elements are looked up in the image while a tile is loaded. */
#include "channel_sum.cuh"
#include "gemm.cuh"

#include <climits>

enum { TILE = 64, WEIGHT_TILE = 32 };   /* a gradient of weights is small and deep: small tiles keep more blocks busy */

/* x[image][channel][h][w], or 0 in the padding. */
static __device__ inline float image_or_zero(const float *x, int channels, int height, int width, int image,
                                             int channel, int h, int w)
{
    if ((unsigned)h >= (unsigned)height || (unsigned)w >= (unsigned)width)
        return 0;
    return x[(((size_t)image * channels + channel) * height + h) * width + w];
}

/* y: rows are output channels, columns the pixels of all images, inner (input channel, tap row, tap column). */
struct forward {
    static constexpr bool A_ALONG_INNER = true, B_ALONG_INNER = false;
    const conv2d &c;
    const float *x, *weights, *bias;
    float *y;
    int rows, columns, inner;

    __device__ float a(int row, int i) const { return weights[(size_t)row * inner + i]; }
    __device__ float b(int i, int column) const
    {
        const int pixels = c.y_h * c.y_w, image = column / pixels, pixel = column % pixels;
        const int taps = c.k * c.k, channel = i / taps, tap = i % taps;
        return image_or_zero(x, c.c_in, c.h, c.w, image, channel, pixel / c.y_w * c.stride - c.pad + tap / c.k,
                             pixel % c.y_w * c.stride - c.pad + tap % c.k);
    }
    __device__ void store(int row, int column, float value) const
    {
        const int pixels = c.y_h * c.y_w;
        y[((size_t)(column / pixels) * c.c_out + row) * pixels + column % pixels] = value + (bias ? bias[row] : 0);
    }
};

/* One dimension of the pixels of x that lie `phase` modulo the stride: only every stride-th tap reaches them. */
struct phase {
    int first, stride, count, tap, taps;

    __device__ phase(int first_, int size, const conv2d &c)
        : first(first_), stride(c.stride), count((size - first_ + c.stride - 1) / c.stride),
          tap((first_ + c.pad) % c.stride), taps(tap < c.k ? (c.k - tap + c.stride - 1) / c.stride : 0)
    {
    }
    __device__ int pixel(int i) const { return first + i * stride; }
    __device__ int tap_at(int i) const { return tap + i * stride; }
    /* Which pixel of y meets pixel i through tap j; may lie outside of y. */
    __device__ int met(int i, int j, int pad) const { return (pixel(i) + pad - tap_at(j)) / stride; }
};

/* g_x, one phase of it: rows are input channels, columns the phase's pixels of all images, inner (output
 * channel, tap row, tap column). The bias is that of a transposed convolution, whose output g_x is. */
struct backward_data {
    static constexpr bool A_ALONG_INNER = false, B_ALONG_INNER = false;
    const conv2d &c;
    const float *g_y, *weights, *bias;
    float *g_x;
    phase vertical, horizontal;
    int rows, columns, inner;

    __device__ float a(int row, int i) const
    {
        const int taps = vertical.taps * horizontal.taps, channel = i / taps, tap = i % taps;
        const int tap_h = vertical.tap_at(tap / horizontal.taps), tap_w = horizontal.tap_at(tap % horizontal.taps);
        return weights[(((size_t)channel * c.c_in + row) * c.k + tap_h) * c.k + tap_w];
    }
    __device__ float b(int i, int column) const
    {
        const int pixels = vertical.count * horizontal.count, image = column / pixels, pixel = column % pixels;
        const int taps = vertical.taps * horizontal.taps, channel = i / taps, tap = i % taps;
        return image_or_zero(g_y, c.c_out, c.y_h, c.y_w, image, channel,
                             vertical.met(pixel / horizontal.count, tap / horizontal.taps, c.pad),
                             horizontal.met(pixel % horizontal.count, tap % horizontal.taps, c.pad));
    }
    __device__ void store(int row, int column, float value) const
    {
        const int pixels = vertical.count * horizontal.count, image = column / pixels, pixel = column % pixels;
        const int h = vertical.pixel(pixel / horizontal.count), w = horizontal.pixel(pixel % horizontal.count);
        g_x[(((size_t)image * c.c_in + row) * c.h + h) * c.w + w] = value + (bias ? bias[row] : 0);
    }
};

/* g_w: rows are output channels, columns (input channel, tap row, tap column), inner the pixels of all images. */
struct backward_weight {
    static constexpr bool A_ALONG_INNER = true, B_ALONG_INNER = true;
    const conv2d &c;
    const float *x, *g_y;
    float *g_w;
    int rows, columns, inner;

    __device__ float a(int row, int i) const
    {
        const int pixels = c.y_h * c.y_w;
        return g_y[((size_t)(i / pixels) * c.c_out + row) * pixels + i % pixels];
    }
    __device__ float b(int i, int column) const
    {
        const int pixels = c.y_h * c.y_w, image = i / pixels, pixel = i % pixels;
        const int taps = c.k * c.k, channel = column / taps, tap = column % taps;
        return image_or_zero(x, c.c_in, c.h, c.w, image, channel, pixel / c.y_w * c.stride - c.pad + tap / c.k,
                             pixel % c.y_w * c.stride - c.pad + tap % c.k);
    }
    __device__ void store(int row, int column, float value) const { g_w[(size_t)row * columns + column] += value; }
};

__global__ void ddpcheck_conv2d_forward(conv2d c, const float *x, const float *w, const float *bias, float *y)
{
    gemm_tile<TILE>(forward{ c, x, w, bias, y, c.c_out, c.n * c.y_h * c.y_w, c.c_in * c.k * c.k });
}

__global__ void ddpcheck_conv2d_backward_data(conv2d c, const float *g_y, const float *w, const float *bias,
                                              float *g_x)
{
    const phase vertical(blockIdx.z / c.stride, c.h, c), horizontal(blockIdx.z % c.stride, c.w, c);

    gemm_tile<TILE>(backward_data{ c, g_y, w, bias, g_x, vertical, horizontal, c.c_in,
                                   c.n * vertical.count * horizontal.count,
                                   c.c_out * vertical.taps * horizontal.taps });
}

__global__ void ddpcheck_conv2d_backward_weight(conv2d c, const float *x, const float *g_y, float *g_w)
{
    gemm_tile<WEIGHT_TILE>(backward_weight{ c, x, g_y, g_w, c.c_out, c.c_in * c.k * c.k, c.n * c.y_h * c.y_w });
}

static bool fits_int(int64_t a, int64_t b, int64_t c)
{
    return a * b <= INT_MAX - 2 * TILE && a * b * c <= INT_MAX - 2 * TILE;
}

static bool shape_is_valid(const conv2d *c)
{
    return c->n > 0 && c->c_in > 0 && c->h > 0 && c->w > 0 && c->c_out > 0 && c->k > 0 && c->stride > 0 &&
           c->pad >= 0 && c->y_h > 0 && c->y_w > 0 && fits_int(c->n, c->h, c->w) && fits_int(c->n, c->y_h, c->y_w) &&
           fits_int(c->k, c->k, c->c_in) && fits_int(c->k, c->k, c->c_out);
}

cudaError_t kernels_conv2d_forward(const struct conv2d *c, const float *x, const float *w, const float *bias,
                                   float *y, cudaStream_t stream)
{
    if (!shape_is_valid(c))
        return cudaErrorInvalidValue;
    return launch(ddpcheck_conv2d_forward, gemm_grid(TILE, c->c_out, c->n * c->y_h * c->y_w), gemm_threads(TILE),
                  stream, *c, x, w, bias, y);
}

cudaError_t kernels_conv2d_transposed_forward(const struct conv2d *c, const float *x, const float *w,
                                              const float *bias, float *y, cudaStream_t stream)
{
    if (!shape_is_valid(c))
        return cudaErrorInvalidValue;
    const int rows = (c->h + c->stride - 1) / c->stride, columns = (c->w + c->stride - 1) / c->stride;
    return launch(ddpcheck_conv2d_backward_data,
                  gemm_grid(TILE, c->c_in, c->n * rows * columns, c->stride * c->stride), gemm_threads(TILE), stream,
                  *c, x, w, bias, y);
}

cudaError_t kernels_conv2d_backward_data(const struct conv2d *c, const float *g_y, const float *w, float *g_x,
                                         cudaStream_t stream)
{
    return kernels_conv2d_transposed_forward(c, g_y, w, nullptr, g_x, stream);
}

cudaError_t kernels_conv2d_transposed_backward_data(const struct conv2d *c, const float *g_y, const float *w,
                                                    float *g_x, cudaStream_t stream)
{
    return kernels_conv2d_forward(c, g_y, w, nullptr, g_x, stream);
}

static cudaError_t weight_gradient(const conv2d *c, const float *x, const float *g_y, float *g_w, cudaStream_t stream)
{
    if (!shape_is_valid(c))
        return cudaErrorInvalidValue;
    return launch(ddpcheck_conv2d_backward_weight, gemm_grid(WEIGHT_TILE, c->c_out, c->c_in * c->k * c->k),
                  gemm_threads(WEIGHT_TILE), stream, *c, x, g_y, g_w);
}

cudaError_t kernels_conv2d_backward_weight(const struct conv2d *c, const float *x, const float *g_y, float *g_w,
                                           float *g_bias, cudaStream_t stream)
{
    const cudaError_t status = weight_gradient(c, x, g_y, g_w, stream);

    return status != cudaSuccess ? status : channel_sum(c->n, c->c_out, c->y_h * c->y_w, g_y, g_bias, stream);
}

cudaError_t kernels_conv2d_transposed_backward_weight(const struct conv2d *c, const float *x, const float *g_y,
                                                      float *g_w, float *g_bias, cudaStream_t stream)
{
    const cudaError_t status = weight_gradient(c, g_y, x, g_w, stream);

    return status != cudaSuccess ? status : channel_sum(c->n, c->c_in, c->h * c->w, g_y, g_bias, stream);
}
