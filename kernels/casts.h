/* casts.h: fp32 to and from fp16 (IEEE 754 binary16) and bf16 (the upper half of fp32), to the bit,
 * for both the kernels and their twins. Narrowing rounds to nearest, ties to even; too large
 * becomes infinity; a NaN keeps its sign and the upper bits of its payload and becomes quiet. */
#ifndef DDPCHECK_KERNELS_CASTS_H
#define DDPCHECK_KERNELS_CASTS_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define DDPCHECK_CAST static __host__ __device__ inline
#else
#define DDPCHECK_CAST static inline
#endif

DDPCHECK_CAST uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DDPCHECK_CAST float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

DDPCHECK_CAST uint16_t half_from_float(float value)
{
    const uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000,
                   magnitude = bits & 0x7fffffff;
    uint32_t half;

    if (magnitude > 0x7f800000) { /* NaN */
        half = 0x7e00 | (magnitude >> 13 & 0x3ff);
    } else if (magnitude >= 0x477ff000) { /* 65520, halfway to 2^16, and above */
        half = 0x7c00;
    } else if (magnitude >= 0x38800000) { /* 2^-14, the smallest normal fp16, and above */
        half = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    } else { /* 0.5f's last place is 2^-24, that of a denormal fp16: the sum rounds */
        half = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000;
    }
    return (uint16_t)(sign | half);
}

DDPCHECK_CAST float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
    uint32_t bits;

    if (magnitude > 0x7c00) /* NaN */
        bits = 0x7fc00000 | magnitude << 13;
    else if (magnitude == 0x7c00)
        bits = 0x7f800000;
    else /* 2^112 makes up for the exponents' biases; exact, denormals too */
        bits = float_bits(float_from_bits(magnitude << 13) * 0x1p112f);
    return float_from_bits(sign | bits);
}

DDPCHECK_CAST uint16_t bfloat_from_float(float value)
{
    const uint32_t bits = float_bits(value);

    if ((bits & 0x7fffffff) > 0x7f800000) /* NaN: rounding up could carry it into infinity */
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* fp32 with the fraction of tf32, 10 bits: to nearest, ties away from zero, as PTX's
 * cvt.rna.tf32.f32. */
DDPCHECK_CAST float tf32_from_float(float value)
{
    const uint32_t bits = float_bits(value);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return value;
    return float_from_bits((bits + 0x1000) & ~UINT32_C(0x1fff));
}

DDPCHECK_CAST float bfloat_to_float(uint16_t bfloat)
{
    return float_from_bits((uint32_t)bfloat << 16);
}

#endif
