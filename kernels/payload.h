/* payload.h: the hash of a buffer's bytes, and what counts as NaN and Inf in it: one definition for
 * the GPU's kernel (cuda/payload.cu) and its twin (cpu/payload.c).
 *
 * A buffer is a row of 8-byte little-endian words from its first byte, the last one filled up with
 * zeros. Each word is mixed with its place (two multiplications and shifts, each a bijection, so
 * one changed word always changes the hash) and the results are added modulo 2^64: a sum has no
 * order, so blocks work as they like, and equal bytes give equal hashes on every device. Two
 * different buffers agree with a probability of about 2^-64; it is no protection against somebody
 * who wants them to agree. */
#ifndef DDPCHECK_KERNELS_PAYLOAD_H
#define DDPCHECK_KERNELS_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PAYLOAD_INLINE static inline __host__ __device__
#else
#define PAYLOAD_INLINE static inline
#endif

enum {
    PAYLOAD_BLOCK = 256,
    PAYLOAD_PARTIALS = 4096
}; /* threads of a block; launches under way at one time */
enum {
    PAYLOAD_UNIFORM = 1
}; /* all words are alike (the last one as far as it goes): zeros, a fill, few bytes */

/* What is found, as the kernel writes it; `done` becomes the launch's ticket when the rest is
 * written. */
struct payload_found {
    uint64_t hash;       /* never 0 */
    uint32_t nans, infs; /* elements; 4294967295: that many or more */
    uint32_t flags, reserved;
    uint64_t done;
};

/* NaN and Inf by arithmetic on all elements of a word at once: with the sign bits off, the added
 * number carries into an element's top bit if it is NaN or Inf (`nonfinite`), or NaN (`nan`). IEEE
 * 754 binary16, 32 and 64; bfloat16 as the upper half of binary32; OCP 8-bit floats: E5M2 is like
 * binary16's upper half, E4M3 has no Inf and one NaN. */
struct payload_masks {
    uint64_t magnitude, nonfinite, nan, top;
};

/* By ncclDataType_t's number; all zero (nothing is counted) for integers and what is not known. */
PAYLOAD_INLINE struct payload_masks payload_masks_of(int datatype)
{
    const uint64_t by_8 = UINT64_C(0x0101010101010101), by_16 = UINT64_C(0x0001000100010001),
                   by_32 = UINT64_C(0x100000001);
    struct payload_masks masks = {0, 0, 0, 0};
#define SET_MASKS(a, b, c, d)                                                       \
    masks.magnitude = (a), masks.nonfinite = (b), masks.nan = (c), masks.top = (d); \
    break
    switch (datatype) {
    case 6: /* float16 */
        SET_MASKS(0x7fff * by_16, 0x0400 * by_16, 0x03ff * by_16, 0x8000 * by_16);
    case 7: /* float32 */
        SET_MASKS(0x7fffffff * by_32, 0x00800000 * by_32, 0x007fffff * by_32, 0x80000000 * by_32);
    case 8: /* float64 */
        SET_MASKS(UINT64_C(0x7fffffffffffffff), UINT64_C(1) << 52, (UINT64_C(1) << 52) - 1,
                  UINT64_C(1) << 63);
    case 9: /* bfloat16 */
        SET_MASKS(0x7fff * by_16, 0x0080 * by_16, 0x007f * by_16, 0x8000 * by_16);
    case 10: /* float8 e4m3 */
        SET_MASKS(0x7f * by_8, 0x01 * by_8, 0x01 * by_8, 0x80 * by_8);
    case 11: /* float8 e5m2 */
        SET_MASKS(0x7f * by_8, 0x04 * by_8, 0x03 * by_8, 0x80 * by_8);
    default:
        break;
    }
#undef SET_MASKS
    return masks;
}

/* The top bits of the elements that are NaN or Inf; that are NaN. */
PAYLOAD_INLINE uint64_t payload_nonfinite(uint64_t word, const struct payload_masks *masks)
{
    return ((word & masks->magnitude) + masks->nonfinite) & masks->top;
}
PAYLOAD_INLINE uint64_t payload_nan(uint64_t word, const struct payload_masks *masks)
{
    return ((word & masks->magnitude) + masks->nan) & masks->top;
}

/* The odd constants are those of splitmix64 (Steele, Lea, Flood 2014) and 2^64 divided by the
 * golden ratio. */
PAYLOAD_INLINE uint64_t payload_mix(uint64_t word, uint64_t index)
{
    uint64_t x = word + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 32;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 29;
}
PAYLOAD_INLINE uint64_t payload_finish(uint64_t sum, uint64_t bytes)
{
    uint64_t hash = payload_mix(sum, bytes);
    return hash ? hash : 1;
}

/* Bits of the last word that the buffer has. */
PAYLOAD_INLINE uint64_t payload_last_mask(size_t bytes)
{
    return bytes % 8 ? (UINT64_C(1) << bytes % 8 * 8) - 1 : UINT64_MAX;
}

/* Blocks that a buffer is worth, at most `most`. */
PAYLOAD_INLINE unsigned payload_blocks(size_t bytes, unsigned most)
{
    const size_t each = PAYLOAD_BLOCK * 64, blocks = (bytes + each - 1) / each;
    if (blocks == 0)
        return 1;
    return blocks > most ? most : (unsigned)blocks;
}

#endif
