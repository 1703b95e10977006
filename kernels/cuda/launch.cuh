/* launch.cuh: starting kernels, and the few things that all of them share. */
#ifndef DDPCHECK_KERNELS_LAUNCH_CUH
#define DDPCHECK_KERNELS_LAUNCH_CUH

#include "kernels/kernels.h"

#include <cuda_runtime.h>

enum {
    WARP = 32,
    BLOCK = 256
}; /* threads of a warp; threads of a block, where a kernel requires no other */

/* Keeps arguments out of the deduction of P, so that they convert as in a call. */
template <typename T> struct as_is {
    typedef T type;
};

template <typename... P>
static cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
                          typename as_is<P>::type... arguments)
{
    void *pointers[] = {(void *)&arguments...};

    return cudaLaunchKernel(kernel, grid, block, pointers, 0, stream);
}

static inline unsigned blocks_for(size_t count, size_t each)
{
    const size_t blocks = (count + each - 1) / each, enough = 1 << 16;

    return (unsigned)(blocks < enough ? blocks : enough);
}

/* For kernels whose first parameter is a count of elements that they stride over, `each` of them in
 * one thread. */
template <typename... P>
static cudaError_t launch_elements(void (*kernel)(size_t, P...), size_t each, cudaStream_t stream,
                                   size_t count, typename as_is<P>::type... arguments)
{
    if (count == 0)
        return cudaSuccess;
    return launch(kernel, blocks_for(count, BLOCK * each), BLOCK, stream, count, arguments...);
}

static __device__ inline size_t element_first(void)
{
    return blockIdx.x * (size_t)blockDim.x + threadIdx.x;
}

static __device__ inline size_t element_stride(void)
{
    return gridDim.x * (size_t)blockDim.x;
}

static __device__ inline float warp_sum(float value)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffff, value, distance);
    return value;
}

static __device__ inline float warp_max(float value)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, distance));
    return value;
}

/* The sum over the block's threads, in every thread, always added in the same order. All threads of
 * the block call it; their number is a multiple of WARP. */
static __device__ inline float block_sum(float value)
{
    __shared__ float partial[WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;

    value = warp_sum(value);
    __syncthreads(); /* the sum before may still be read */
    if (lane == 0)
        partial[warp] = value;
    __syncthreads();
    return warp_sum(lane < warps ? partial[lane] : 0);
}

#endif
