/* gemm.cuh: C = A B for matrices that exist only as functions, the core of convolutions and linear
 * layers.
 *
 * A Problem defines how many rows, columns and inner elements there are, computes A's element (row,
 * inner) and B's (inner, column) and stores a result. A_ALONG_INNER and B_ALONG_INNER say along
 * which index neighbours lie together in memory, so that neighbouring threads read neighbours. */
#ifndef DDPCHECK_KERNELS_GEMM_CUH
#define DDPCHECK_KERNELS_GEMM_CUH

#include "launch.cuh"

enum {
    DEPTH = 16,
    PER_THREAD = 4
}; /* inner elements in shared memory at a time; a thread's rows and columns */

__host__ __device__ constexpr int gemm_threads(int tile)
{
    return tile / PER_THREAD * (tile / PER_THREAD);
}

/* The grid for tiles of `tile` x `tile`: columns along x, rows along y. */
static inline dim3 gemm_grid(int tile, int rows, int columns, int layers = 1)
{
    return dim3((columns + tile - 1) / tile, (rows + tile - 1) / tile, layers);
}

/* Which element of a TILE x DEPTH piece the thread loads in its round `round`. */
template <int TILE, bool ALONG_INNER>
static __device__ inline void gemm_place(int round, int *outer, int *inner)
{
    const int element = threadIdx.x + round * gemm_threads(TILE);

    *outer = ALONG_INNER ? element / DEPTH : element % TILE;
    *inner = ALONG_INNER ? element % DEPTH : element / TILE;
}

/* Computes the block's tile; blockDim.x is gemm_threads(TILE). */
template <int TILE, class Problem> static __device__ inline void gemm_tile(const Problem &problem)
{
    constexpr int SIDE = TILE / PER_THREAD, ROUNDS = TILE * DEPTH / gemm_threads(TILE);
    __shared__ float a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    const int my_row = threadIdx.x / SIDE, my_column = threadIdx.x % SIDE;
    float sum[PER_THREAD][PER_THREAD] = {};

    if (first_row >= problem.rows || first_column >= problem.columns)
        return; /* a layer may be smaller than the grid */

    for (int first = 0; first < problem.inner; first += DEPTH) {
        for (int round = 0; round < ROUNDS; round++) {
            int outer, inner;
            gemm_place<TILE, Problem::A_ALONG_INNER>(round, &outer, &inner);
            a[inner][outer] = first_row + outer < problem.rows && first + inner < problem.inner
                                  ? problem.a(first_row + outer, first + inner)
                                  : 0;
            gemm_place<TILE, Problem::B_ALONG_INNER>(round, &outer, &inner);
            b[inner][outer] = first_column + outer < problem.columns &&
                                      first + inner < problem.inner
                                  ? problem.b(first + inner, first_column + outer)
                                  : 0;
        }
        __syncthreads();
        for (int inner = 0; inner < DEPTH; inner++)
            for (int i = 0; i < PER_THREAD; i++)
                for (int j = 0; j < PER_THREAD; j++)
                    sum[i][j] += a[inner][my_row + i * SIDE] * b[inner][my_column + j * SIDE];
        __syncthreads();
    }
    for (int i = 0; i < PER_THREAD; i++)
        for (int j = 0; j < PER_THREAD; j++) {
            const int row = first_row + my_row + i * SIDE,
                      column = first_column + my_column + j * SIDE;
            if (row < problem.rows && column < problem.columns)
                problem.store(row, column, sum[i][j]);
        }
}

#endif
