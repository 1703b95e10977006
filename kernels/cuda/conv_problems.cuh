/* conv_problems.cuh: the three passes of a convolution as Problems of gemm.cuh: implicit matrix
 * products, in which the matrix of image patches is never stored; its elements are looked up in the
 * image while a tile is loaded. */
#ifndef DDPCHECK_KERNELS_CONV_PROBLEMS_CUH
#define DDPCHECK_KERNELS_CONV_PROBLEMS_CUH

#include "kernels/activation.h"
#include "kernels/kernels.h"

enum {
    TILE = 64,
    WEIGHT_TILE = 32
}; /* a gradient of weights is small and deep: small tiles keep more blocks busy */

/* x[image][channel][h][w], or 0 in the padding. */
static __device__ inline float image_or_zero(const float *x, int channels, int height, int width,
                                             int image, int channel, int h, int w)
{
    if ((unsigned)h >= (unsigned)height || (unsigned)w >= (unsigned)width)
        return 0;
    return x[(((size_t)image * channels + channel) * height + h) * width + w];
}

/* y: rows are output channels, columns the pixels of all images, inner (input channel, tap row, tap
 * column). */
struct forward {
    static constexpr bool A_ALONG_INNER = true, B_ALONG_INNER = false;
    const conv2d &c;
    const float *x, *weights, *bias;
    kernels_activation activation;
    float *y;
    int rows, columns, inner;

    __device__ float a(int row, int i) const
    {
        return weights[(size_t)row * inner + i];
    }
    __device__ float b(int i, int column) const
    {
        const int pixels = c.y_h * c.y_w, image = column / pixels, pixel = column % pixels;
        const int taps = c.k * c.k, channel = i / taps, tap = i % taps;
        return image_or_zero(x, c.c_in, c.h, c.w, image, channel,
                             pixel / c.y_w * c.stride - c.pad + tap / c.k,
                             pixel % c.y_w * c.stride - c.pad + tap % c.k);
    }
    __device__ void store(int row, int column, float value) const
    {
        const int pixels = c.y_h * c.y_w;
        y[((size_t)(column / pixels) * c.c_out + row) * pixels + column % pixels] =
            activated(activation, value + (bias ? bias[row] : 0));
    }
};

/* One dimension of the pixels of x that lie `phase` modulo the stride: only every stride-th tap
 * reaches them. */
struct phase {
    int first, stride, count, tap, taps;

    __device__ phase(int first_, int size, const conv2d &c)
        : first(first_), stride(c.stride), count((size - first_ + c.stride - 1) / c.stride),
          tap((first_ + c.pad) % c.stride),
          taps(tap < c.k ? (c.k - tap + c.stride - 1) / c.stride : 0)
    {
    }
    __device__ int pixel(int i) const
    {
        return first + i * stride;
    }
    __device__ int tap_at(int i) const
    {
        return tap + i * stride;
    }
    /* Which pixel of y meets pixel i through tap j; may lie outside of y. */
    __device__ int met(int i, int j, int pad) const
    {
        return (pixel(i) + pad - tap_at(j)) / stride;
    }
};

/* g_x, one phase of it: rows are input channels, columns the phase's pixels of all images, inner
 * (output channel, tap row, tap column). Bias and activation are those of a transposed convolution,
 * whose output g_x is. */
struct backward_data {
    static constexpr bool A_ALONG_INNER = false, B_ALONG_INNER = false;
    const conv2d &c;
    const float *g_y, *weights, *bias;
    kernels_activation activation;
    float *g_x;
    phase vertical, horizontal;
    int rows, columns, inner;

    __device__ float a(int row, int i) const
    {
        const int taps = vertical.taps * horizontal.taps, channel = i / taps, tap = i % taps;
        const int tap_h = vertical.tap_at(tap / horizontal.taps),
                  tap_w = horizontal.tap_at(tap % horizontal.taps);
        return weights[(((size_t)channel * c.c_in + row) * c.k + tap_h) * c.k + tap_w];
    }
    __device__ float b(int i, int column) const
    {
        const int pixels = vertical.count * horizontal.count, image = column / pixels,
                  pixel = column % pixels;
        const int taps = vertical.taps * horizontal.taps, channel = i / taps, tap = i % taps;
        return image_or_zero(
            g_y, c.c_out, c.y_h, c.y_w, image, channel,
            vertical.met(pixel / horizontal.count, tap / horizontal.taps, c.pad),
            horizontal.met(pixel % horizontal.count, tap % horizontal.taps, c.pad));
    }
    __device__ void store(int row, int column, float value) const
    {
        const int pixels = vertical.count * horizontal.count, image = column / pixels,
                  pixel = column % pixels;
        const int h = vertical.pixel(pixel / horizontal.count),
                  w = horizontal.pixel(pixel % horizontal.count);
        g_x[(((size_t)image * c.c_in + row) * c.h + h) * c.w + w] =
            activated(activation, value + (bias ? bias[row] : 0));
    }
};

/* g_w: rows are output channels, columns (input channel, tap row, tap column), inner the pixels of
 * all images. */
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
        return image_or_zero(x, c.c_in, c.h, c.w, image, channel,
                             pixel / c.y_w * c.stride - c.pad + tap / c.k,
                             pixel % c.y_w * c.stride - c.pad + tap % c.k);
    }
    __device__ void store(int row, int column, float value) const
    {
        g_w[(size_t)row * columns + column] += value;
    }
};

/* The problem of this block of backward_data, whose grid has a layer for each phase. */
static __device__ inline backward_data backward_data_of_layer(const conv2d &c, const float *g_y,
                                                              const float *w, const float *bias,
                                                              kernels_activation activation,
                                                              float *g_x)
{
    const phase vertical(blockIdx.z / c.stride, c.h, c), horizontal(blockIdx.z % c.stride, c.w, c);

    return backward_data{c,
                         g_y,
                         w,
                         bias,
                         activation,
                         g_x,
                         vertical,
                         horizontal,
                         c.c_in,
                         c.n * vertical.count * horizontal.count,
                         c.c_out * vertical.taps * horizontal.taps};
}

static __device__ inline forward forward_of(const conv2d &c, const float *x, const float *w,
                                            const float *bias, kernels_activation activation,
                                            float *y)
{
    return forward{c, x, w, bias, activation, y, c.c_out, c.n * c.y_h * c.y_w, c.c_in * c.k * c.k};
}

static __device__ inline backward_weight backward_weight_of(const conv2d &c, const float *x,
                                                            const float *g_y, float *g_w)
{
    return backward_weight{c, x, g_y, g_w, c.c_out, c.c_in * c.k * c.k, c.n * c.y_h * c.y_w};
}

#endif
