/* simt_wmma.h: what the kernels use of nvcuda::wmma (CUDA C++ Programming Guide, "Warp matrix
 * functions"), for simt.h. A warp's fragment is kept and computed by its first lane; how a GPU
 * spreads it over the lanes is unspecified, and kernels that look at single elements (fragment::x)
 * do not compile here. The guide's rules are checked: all lanes call with the same arguments,
 * memory is aligned to 256 bits, lines are a multiple of 16 bytes, tf32 is rounded. */
#ifndef DDPCHECK_TESTS_KERNELS_SIMT_WMMA_H
#define DDPCHECK_TESTS_KERNELS_SIMT_WMMA_H

#include <cstdint>
#include <cstring>

namespace nvcuda
{
namespace wmma
{

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
namespace precision
{
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };

/* What memory holds for an element of the type, and whether M, N, K and the type are a shape that
 * exists. */
template <typename T> struct element;
template <> struct element<__nv_bfloat16> {
    typedef __nv_bfloat16 stored;
    static constexpr bool has_shape(int m, int n, int k)
    {
        return m == 16 && n == 16 && k == 16;
    }
};
template <> struct element<precision::tf32> {
    typedef float stored;
    static constexpr bool has_shape(int m, int n, int k)
    {
        return m == 16 && n == 16 && k == 8;
    }
};
template <> struct element<float> {
    typedef float stored;
    static constexpr bool has_shape(int m, int n, int k)
    {
        return m == 16 && n == 16 && (k == 16 || k == 8);
    }
};

template <typename Use, int M, int N, int K> struct extent;
template <int M, int N, int K> struct extent<matrix_a, M, N, K> {
    static constexpr int ROWS = M, COLUMNS = K;
};
template <int M, int N, int K> struct extent<matrix_b, M, N, K> {
    static constexpr int ROWS = K, COLUMNS = N;
};
template <int M, int N, int K> struct extent<accumulator, M, N, K> {
    static constexpr int ROWS = M, COLUMNS = N;
};

template <typename Use, int M, int N, int K, typename T, typename Layout = void> class fragment
{
  public:
    static constexpr int ROWS = extent<Use, M, N, K>::ROWS, COLUMNS = extent<Use, M, N, K>::COLUMNS;
    static_assert(element<T>::has_shape(M, N, K), "a shape that tensor cores have");

    float at[ROWS][COLUMNS]; /* of the first lane; others leave it alone */
};

static inline bool simt_first_lane()
{
    return threadIdx.x % 32 == 0;
}

template <typename Stored>
void simt_check_matrix(const char *call, const Stored *memory, unsigned line)
{
    simt_warp_agrees(call, (size_t)memory);
    simt_warp_agrees(call, line);
    simt_demand((uintptr_t)memory % 32 == 0, "a matrix in memory that is not aligned to 256 bits");
    simt_demand(line * sizeof *memory % 16 == 0,
                "a matrix whose lines are no multiple of 16 bytes");
}

static inline float simt_multiplicand(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

/* fp32 where tf32 belongs has an undefined result (the guide, "Alternate floating point"). */
static inline float simt_multiplicand(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    simt_demand((bits & 0x1fff) == 0 || value != value,
                "a multiplicand that was not rounded to tf32");
    return value;
}

template <typename Use, int M, int N, int K, typename T, typename Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &to,
                      const typename element<T>::stored *from, unsigned line)
{
    simt_check_matrix("load_matrix_sync: the lanes' arguments differ", from, line);
    for (int row = 0; simt_first_lane() && row < to.ROWS; row++)
        for (int column = 0; column < to.COLUMNS; column++)
            to.at[row][column] = simt_multiplicand(std::is_same<Layout, row_major>::value
                                                       ? from[row * line + column]
                                                       : from[column * line + row]);
}

template <typename Use, int M, int N, int K, typename T, typename Layout>
void fill_fragment(fragment<Use, M, N, K, T, Layout> &to, const float &value)
{
    simt_warp_agrees("fill_fragment: the lanes' values differ", (size_t)value);
    for (int row = 0; simt_first_lane() && row < to.ROWS; row++)
        for (int column = 0; column < to.COLUMNS; column++)
            to.at[row][column] = value;
}

/* Products of two bf16 or tf32 are exact in fp32; their sums are rounded as fp32's are. */
template <int M, int N, int K, typename T, typename LayoutA, typename LayoutB>
void mma_sync(fragment<accumulator, M, N, K, float> &d,
              const fragment<matrix_a, M, N, K, T, LayoutA> &a,
              const fragment<matrix_b, M, N, K, T, LayoutB> &b,
              const fragment<accumulator, M, N, K, float> &c)
{
    simt_warp_agrees("mma_sync: not called by all lanes", K);
    for (int row = 0; simt_first_lane() && row < M; row++)
        for (int column = 0; column < N; column++) {
            float sum = c.at[row][column];
            for (int inner = 0; inner < K; inner++)
                sum += a.at[row][inner] * b.at[inner][column];
            d.at[row][column] = sum;
        }
}

template <int M, int N, int K>
void store_matrix_sync(float *to, const fragment<accumulator, M, N, K, float> &from, unsigned line,
                       layout_t layout)
{
    simt_check_matrix("store_matrix_sync: the lanes' arguments differ", to, line);
    simt_warp_agrees("store_matrix_sync: the lanes' layouts differ", layout);
    for (int row = 0; simt_first_lane() && row < M; row++)
        for (int column = 0; column < N; column++)
            to[layout == mem_row_major ? row * line + column : column * line + row] =
                from.at[row][column];
}

} // namespace wmma
} // namespace nvcuda

#endif
