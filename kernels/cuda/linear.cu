/* linear.cu: the three products of a linear layer, in plain fp32 or on tensor cores. */
#include "channel_sum.cuh"
#include "gemm_tensor.cuh"
#include "math.cuh"

enum { TILE = 64 };

/* result = A B, with bias[column] if there is one, or added to what is there. A is stored
 * [rows][inner], or [inner][rows] if A_TURNED; B is stored [inner][columns], or [columns][inner] if
 * B_TURNED. */
template <bool A_TURNED, bool B_TURNED, bool ADD> struct product {
    static constexpr bool A_ALONG_INNER = !A_TURNED, B_ALONG_INNER = B_TURNED;
    int rows, columns, inner;
    const float *left, *right, *bias;
    float *result;

    __device__ float a(int row, int i) const
    {
        return left[A_TURNED ? (size_t)i * rows + row : (size_t)row * inner + i];
    }
    __device__ float b(int i, int column) const
    {
        return right[B_TURNED ? (size_t)column * inner + i : (size_t)i * columns + column];
    }
    __device__ void store(int row, int column, float value) const
    {
        float *place = &result[(size_t)row * columns + column];
        const float sum = value + (ADD ? *place : 0);
        *place = sum + (bias ? bias[column] : 0);
    }
};

static __device__ inline product<false, true, false> forward_of(int n, int in, int out,
                                                                const float *x, const float *w,
                                                                const float *bias, float *y)
{
    return {n, out, in, x, w, bias, y};
}

static __device__ inline product<false, false, false> backward_data_of(int n, int in, int out,
                                                                       const float *g_y,
                                                                       const float *w, float *g_x)
{
    return {n, in, out, g_y, w, nullptr, g_x};
}

static __device__ inline product<true, false, true> backward_weight_of(int n, int in, int out,
                                                                       const float *x,
                                                                       const float *g_y, float *g_w)
{
    return {out, in, n, g_y, x, nullptr, g_w};
}

/* The three passes, multiplied in a format. */
#define LINEAR_KERNELS(suffix, format)                                                           \
    __global__ void ddpcheck_linear_forward##suffix(int n, int in, int out, const float *x,      \
                                                    const float *w, const float *bias, float *y) \
    {                                                                                            \
        product_tile<format, TILE>(forward_of(n, in, out, x, w, bias, y));                       \
    }                                                                                            \
    __global__ void ddpcheck_linear_backward_data##suffix(                                       \
        int n, int in, int out, const float *g_y, const float *w, float *g_x)                    \
    {                                                                                            \
        product_tile<format, TILE>(backward_data_of(n, in, out, g_y, w, g_x));                   \
    }                                                                                            \
    __global__ void ddpcheck_linear_backward_weight##suffix(                                     \
        int n, int in, int out, const float *x, const float *g_y, float *g_w)                    \
    {                                                                                            \
        product_tile<format, TILE>(backward_weight_of(n, in, out, x, g_y, g_w));                 \
    }

LINEAR_KERNELS(, fp32)
LINEAR_KERNELS(_tf32, tf32)
LINEAR_KERNELS(_bf16, bf16)

static void (*const forward_kernels[])(int, int, int, const float *, const float *, const float *,
                                       float *) = KERNELS_OF(linear_forward);
static void (*const backward_data_kernels[])(int, int, int, const float *, const float *,
                                             float *) = KERNELS_OF(linear_backward_data);
static void (*const backward_weight_kernels[])(int, int, int, const float *, const float *,
                                               float *) = KERNELS_OF(linear_backward_weight);

static bool linear_sizes_are_valid(int n, int in, int out)
{
    return n > 0 && in > 0 && out > 0;
}

cudaError_t kernels_linear_forward(int n, int in, int out, const float *x, const float *w,
                                   const float *bias, float *y, cudaStream_t stream)
{
    if (!linear_sizes_are_valid(n, in, out))
        return cudaErrorInvalidValue;
    return launch(forward_kernels[math_set], gemm_grid(TILE, n, out), gemm_threads(TILE), stream, n,
                  in, out, x, w, bias, y);
}

cudaError_t kernels_linear_backward_data(int n, int in, int out, const float *g_y, const float *w,
                                         float *g_x, cudaStream_t stream)
{
    if (!linear_sizes_are_valid(n, in, out))
        return cudaErrorInvalidValue;
    return launch(backward_data_kernels[math_set], gemm_grid(TILE, n, in), gemm_threads(TILE),
                  stream, n, in, out, g_y, w, g_x);
}

cudaError_t kernels_linear_backward_weight(int n, int in, int out, const float *x, const float *g_y,
                                           float *g_w, float *g_bias, cudaStream_t stream)
{
    if (!linear_sizes_are_valid(n, in, out))
        return cudaErrorInvalidValue;
    const cudaError_t status = launch(backward_weight_kernels[math_set], gemm_grid(TILE, out, in),
                                      gemm_threads(TILE), stream, n, in, out, x, g_y, g_w);
    return status != cudaSuccess ? status : channel_sum(n, out, 1, g_y, g_bias, stream);
}
