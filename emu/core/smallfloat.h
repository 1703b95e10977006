/* smallfloat.h: floats of 16 and 8 bits to and from float, in integer arithmetic that any machine
 * has. Rounds to nearest, ties to even, as GPUs do; fp8 saturates to its largest finite value, as
 * CUDA's conversions with __NV_SATFINITE (which NCCL uses). */
#ifndef DDPCHECK_EMU_SMALLFLOAT_H
#define DDPCHECK_EMU_SMALLFLOAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float bf16_load(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

static inline uint16_t bf16_store(float value)
{
    uint32_t bits = float_bits(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (uint16_t)(value != value ? 0x7fff : rounded);
}

/* How a small float is laid out: exponent and mantissa bits below the sign. */
struct smallfloat {
    int exponent, mantissa;
    bool infinity; /* false: the highest exponent holds numbers too, and only all ones is NaN */
    bool saturates;
};

#define FP16     ((struct smallfloat){5, 10, true, false})
#define FP8_E4M3 ((struct smallfloat){4, 3, false, true})
#define FP8_E5M2 ((struct smallfloat){5, 2, true, true})

static inline uint32_t smallfloat_infinity(struct smallfloat f)
{
    return ((1u << f.exponent) - 1) << f.mantissa;
}

/* What stands for NaN: with infinities any mantissa but 0 at the highest exponent, else all ones.
 */
static inline uint32_t smallfloat_nan(struct smallfloat f)
{
    return (1u << (f.exponent + f.mantissa)) - 1;
}

static inline uint32_t smallfloat_largest(struct smallfloat f)
{
    return f.infinity ? smallfloat_infinity(f) - 1 : smallfloat_nan(f) - 1;
}

static inline float smallfloat_load(struct smallfloat f, uint32_t bits)
{
    uint32_t sign = bits >> (f.exponent + f.mantissa) << 31;
    uint32_t magnitude = bits & smallfloat_nan(f);
    int bias = (1 << (f.exponent - 1)) - 1;
    /* The bits as a float's, with an exponent that is too small by a known power of two: one
     * multiplication corrects it, for subnormal numbers as well. */
    float value = float_of_bits(magnitude << (23 - f.mantissa)) *
                  float_of_bits((uint32_t)(254 - bias) << 23);
    bool nan = f.infinity ? magnitude > smallfloat_infinity(f) : magnitude == smallfloat_nan(f);

    if (f.infinity && magnitude == smallfloat_infinity(f))
        value = float_of_bits(0x7f800000);
    if (nan)
        value = float_of_bits(0x7fc00000);
    return float_of_bits(float_bits(value) | sign);
}

static inline uint32_t smallfloat_store(struct smallfloat f, float value)
{
    uint32_t bits = float_bits(value), sign = bits >> 31 << (f.exponent + f.mantissa);
    uint32_t magnitude = bits & 0x7fffffff, result;
    int bias = (1 << (f.exponent - 1)) - 1, drop = 23 - f.mantissa;
    uint32_t smallest_normal = (uint32_t)(127 - bias + 1) << 23;

    if (magnitude > 0x7f800000)
        return sign | smallfloat_nan(f);
    if (magnitude >= smallest_normal) {
        result = magnitude - ((uint32_t)(127 - bias) << 23);
        result = (result + (1u << (drop - 1)) - 1 + (result >> drop & 1)) >> drop;
    } else {
        /* Adding this puts the last bit to keep at the sum's last place, so the sum is rounded
         * there. */
        float magic = float_of_bits((uint32_t)(127 - bias + 1 + drop) << 23);

        result = float_bits(float_of_bits(magnitude) + magic) - float_bits(magic);
    }
    if (magnitude == 0x7f800000 || result > smallfloat_largest(f))
        result = f.saturates ? smallfloat_largest(f) : smallfloat_infinity(f);
    return sign | result;
}

#endif
