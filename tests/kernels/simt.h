/* simt.h: lets a C++ compiler build the .cu files, to run the kernels' own source on the CPU. Each
 * GPU thread is a coroutine; blocks run one after the other; block barriers and warp exchanges wait
 * as on a GPU. Included before the first line of each .cu file. */
#ifndef DDPCHECK_TESTS_KERNELS_SIMT_H
#define DDPCHECK_TESTS_KERNELS_SIMT_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <functional>
#include <math.h>
#include <utility>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#define __global__
#define __device__
#define __host__
#define __shared__ static /* one block at a time */

extern dim3 gridDim, blockDim;
extern uint3 blockIdx, threadIdx;

void __syncthreads();
float __shfl_xor_sync(unsigned mask, float value, int lane_mask);
int __any_sync(unsigned mask, int predicate);
/* Waits for the whole warp, all of whose lanes must give the same value: for calls that a warp
 * makes as one. Ends the program with a message that names `call` where they differ. */
void simt_warp_agrees(const char *call, size_t value);
/* Ends the program with a message where `right` is false: a rule of CUDA is broken. */
void simt_demand(bool right, const char *what);

/* One GPU thread runs at a time, so memory is always in order and every update whole. */
template <typename T> T atomicAdd(T *address, T value)
{
    const T before = *address;
    *address += value;
    return before;
}
template <typename T> T atomicExch(T *address, T value)
{
    const T before = *address;
    *address = value;
    return before;
}
static inline void __threadfence()
{
}
static inline void __threadfence_system()
{
}
static inline int __popcll(unsigned long long word)
{
    return __builtin_popcountll(word);
}

/* Runs `thread` once for each thread of the grid. Ends the program with a message where a GPU would
 * hang or have no defined result: threads that wait at different barriers, a warp exchange with a
 * thread that has ended. */
cudaError_t simt_run(dim3 grid, dim3 block, const std::function<void()> &thread);

template <typename... P, size_t... I>
cudaError_t simt_launch(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments,
                        std::index_sequence<I...>)
{
    return simt_run(grid, block, [&] { kernel(*static_cast<P *>(arguments[I])...); });
}

template <typename... P>
cudaError_t simt_launch(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments, size_t,
                        cudaStream_t)
{
    return simt_launch(kernel, grid, block, arguments, std::index_sequence_for<P...>());
}

#define cudaLaunchKernel simt_launch

#include "tests/kernels/simt_wmma.h"

#endif
