/* gemm_tensor.cuh: gemm.cuh's product on tensor cores (CUDA C++ Programming Guide, "Warp matrix
 * functions"): the numbers that a Problem gives are rounded to a Format, products are summed in
 * fp32.
 *
 * A block computes TILE x TILE, each of its warps 16 x 32 of that. A piece of A and of B lies in
 * shared memory in the direction in which it is read; while the warps multiply one piece, the
 * threads already read the next into registers. Launch as gemm_tile: the same grid and the same
 * number of threads. */
#ifndef DDPCHECK_KERNELS_GEMM_TENSOR_CUH
#define DDPCHECK_KERNELS_GEMM_TENSOR_CUH

#include "gemm.cuh"
#include "kernels/casts.h"

#include <cuda_bf16.h>
#include <mma.h>
#include <type_traits>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 && !defined(DDPCHECK_NO_TENSOR_CORES)
#define DDPCHECK_NO_TENSOR_CORES /* none that know tf32 and bf16 */
#endif

#ifdef DDPCHECK_NO_TENSOR_CORES

struct tf32 {
    static __device__ float rounded(float value)
    {
        return tf32_from_float(value);
    }
};

struct bf16 {
    static __device__ float rounded(float value)
    {
        return bfloat_to_float(bfloat_from_float(value));
    }
};

template <class Format, class Problem> struct rounded_problem : Problem {
    __device__ explicit rounded_problem(const Problem &problem) : Problem(problem)
    {
    }
    __device__ float a(int row, int i) const
    {
        return Format::rounded(Problem::a(row, i));
    }
    __device__ float b(int i, int column) const
    {
        return Format::rounded(Problem::b(i, column));
    }
};

template <class Format, int TILE, class Problem>
static __device__ inline void gemm_tensor_tile(const Problem &problem)
{
    gemm_tile<TILE>(rounded_problem<Format, Problem>(problem));
}

#else

/* What is stored, what fragments are made of, how many inner elements one instruction takes, and
 * how many elements more than needed a row of shared memory has: 16 bytes, so that neighbouring
 * rows begin in other banks. */
struct tf32 {
    typedef float stored;
    typedef nvcuda::wmma::precision::tf32 fragment;
    static constexpr int STEP = 8, SPARE = 4;
    static __device__ stored rounded(float value)
    {
        return tf32_from_float(value);
    }
};

struct bf16 {
    typedef __nv_bfloat16 stored, fragment;
    static constexpr int STEP = 16, SPARE = 8;
    static __device__ stored rounded(float value)
    {
        return __float2bfloat16_rn(value);
    }
};

enum { TENSOR_DEPTH = 32, FRAGMENT = 16, FRAGMENTS_WIDE = 2 };

/* How the piece of a matrix that has TILE rows (of A) or columns (of B) and TENSOR_DEPTH inner
 * elements lies in shared memory: lines of neighbours, which the threads of a warp read and write
 * together. */
template <class Format, int TILE, bool ALONG_INNER> struct tensor_piece {
    typedef typename Format::stored stored;
    static constexpr int LINE = (ALONG_INNER ? int(TENSOR_DEPTH) : TILE) + Format::SPARE;
    static constexpr int LINES = ALONG_INNER ? TILE : int(TENSOR_DEPTH);
    static constexpr int ROUNDS = TILE * TENSOR_DEPTH / gemm_threads(TILE);

    static __device__ int outer(int round)
    {
        const int element = threadIdx.x + round * gemm_threads(TILE);
        return ALONG_INNER ? element / TENSOR_DEPTH : element % TILE;
    }
    static __device__ int inner(int round)
    {
        const int element = threadIdx.x + round * gemm_threads(TILE);
        return ALONG_INNER ? element % TENSOR_DEPTH : element / TILE;
    }
    static __device__ int place(int outer, int inner)
    {
        return ALONG_INNER ? outer * LINE + inner : inner * LINE + outer;
    }
};

/* The block's tile as one warp sees it: FRAGMENTS_WIDE results beside each other. */
template <class Format, int TILE, class Problem> struct tensor_warp {
    typedef tensor_piece<Format, TILE, Problem::A_ALONG_INNER> a_piece;
    typedef tensor_piece<Format, TILE, Problem::B_ALONG_INNER> b_piece;
    typedef typename Format::stored stored;
    typedef typename std::conditional<Problem::A_ALONG_INNER, nvcuda::wmma::row_major,
                                      nvcuda::wmma::col_major>::type a_layout;
    typedef typename std::conditional<Problem::B_ALONG_INNER, nvcuda::wmma::col_major,
                                      nvcuda::wmma::row_major>::type b_layout;
    static constexpr int WIDE = TILE / (FRAGMENT * FRAGMENTS_WIDE); /* warps beside each other */

    int row, column;
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, FRAGMENT, FRAGMENT, Format::STEP, float>
        sum[FRAGMENTS_WIDE];

    __device__ tensor_warp()
    {
        const int warp = threadIdx.x / WARP;

        row = warp / WIDE * FRAGMENT;
        column = warp % WIDE * FRAGMENT * FRAGMENTS_WIDE;
        for (int i = 0; i < FRAGMENTS_WIDE; i++)
            nvcuda::wmma::fill_fragment(sum[i], 0.0f);
    }
    __device__ void multiply(const stored *a, const stored *b)
    {
        nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, FRAGMENT, FRAGMENT, Format::STEP,
                               typename Format::fragment, a_layout>
            left;
        nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, FRAGMENT, FRAGMENT, Format::STEP,
                               typename Format::fragment, b_layout>
            right;

        for (int inner = 0; inner < TENSOR_DEPTH; inner += Format::STEP) {
            nvcuda::wmma::load_matrix_sync(left, a + a_piece::place(row, inner), a_piece::LINE);
            for (int i = 0; i < FRAGMENTS_WIDE; i++) {
                nvcuda::wmma::load_matrix_sync(
                    right, b + b_piece::place(column + i * FRAGMENT, inner), b_piece::LINE);
                nvcuda::wmma::mma_sync(sum[i], left, right, sum[i]);
            }
        }
    }
    __device__ void store(float *results, int line) const
    {
        for (int i = 0; i < FRAGMENTS_WIDE; i++)
            nvcuda::wmma::store_matrix_sync(results + row * line + column + i * FRAGMENT, sum[i],
                                            line, nvcuda::wmma::mem_row_major);
    }
};

/* A thread's share of the next pieces of A and B. */
template <class Format, int TILE, class Problem> struct tensor_share {
    typedef tensor_piece<Format, TILE, Problem::A_ALONG_INNER> a_piece;
    typedef tensor_piece<Format, TILE, Problem::B_ALONG_INNER> b_piece;
    float a[a_piece::ROUNDS], b[b_piece::ROUNDS];

    __device__ void read(const Problem &problem, int first_row, int first_column, int first)
    {
        for (int round = 0; round < a_piece::ROUNDS; round++) {
            const int row = first_row + a_piece::outer(round), i = first + a_piece::inner(round);
            a[round] = row < problem.rows && i < problem.inner ? problem.a(row, i) : 0;
        }
        for (int round = 0; round < b_piece::ROUNDS; round++) {
            const int column = first_column + b_piece::outer(round),
                      i = first + b_piece::inner(round);
            b[round] = column < problem.columns && i < problem.inner ? problem.b(i, column) : 0;
        }
    }
    __device__ void write(typename Format::stored *to_a, typename Format::stored *to_b) const
    {
        for (int round = 0; round < a_piece::ROUNDS; round++)
            to_a[a_piece::place(a_piece::outer(round), a_piece::inner(round))] =
                Format::rounded(a[round]);
        for (int round = 0; round < b_piece::ROUNDS; round++)
            to_b[b_piece::place(b_piece::outer(round), b_piece::inner(round))] =
                Format::rounded(b[round]);
    }
};

/* Computes the block's tile; blockDim.x is gemm_threads(TILE). */
template <class Format, int TILE, class Problem>
static __device__ inline void gemm_tensor_tile(const Problem &problem)
{
    typedef tensor_share<Format, TILE, Problem> share;
    constexpr int RESULT_LINE = TILE + 4;
    static_assert(gemm_threads(TILE) / WARP * FRAGMENT * FRAGMENT * FRAGMENTS_WIDE == TILE * TILE,
                  "warps cover the tile");
    alignas(32) __shared__ typename Format::stored a[share::a_piece::LINES * share::a_piece::LINE];
    alignas(32) __shared__ typename Format::stored b[share::b_piece::LINES * share::b_piece::LINE];
    alignas(32) __shared__ float results[TILE * RESULT_LINE];
    const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;

    if (first_row >= problem.rows || first_column >= problem.columns)
        return; /* a layer may be smaller than the grid */

    tensor_warp<Format, TILE, Problem> warp;
    share next;
    next.read(problem, first_row, first_column, 0);
    for (int first = 0; first < problem.inner; first += TENSOR_DEPTH) {
        next.write(a, b);
        __syncthreads();
        next.read(problem, first_row, first_column, first + TENSOR_DEPTH);
        warp.multiply(a, b);
        __syncthreads();
    }
    warp.store(results, RESULT_LINE);
    __syncthreads();
    for (int element = threadIdx.x; element < TILE * TILE; element += gemm_threads(TILE)) {
        const int row = first_row + element / TILE, column = first_column + element % TILE;
        if (row < problem.rows && column < problem.columns)
            problem.store(row, column, results[element / TILE * RESULT_LINE + element % TILE]);
    }
}

#endif

/* Numbers as they are, without tensor cores. */
struct fp32;

/* Computes the block's tile in the format. */
template <class Format, int TILE, class Problem>
static __device__ inline void product_tile(const Problem &problem)
{
    if constexpr (std::is_same<Format, fp32>::value)
        gemm_tile<TILE>(problem);
    else
        gemm_tensor_tile<Format, TILE>(problem);
}

#endif
