#include "tests/emu_nccl/values.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/emu_nccl/ranks.h"

static const struct {
    size_t bytes;
    bool has_sign;
    int exponent, mantissa; /* of floats that C does not have */
} types[ncclNumTypes] = {
    [ncclInt8] = {1, true, 0, 0},       [ncclUint8] = {1, false, 0, 0},
    [ncclInt32] = {4, true, 0, 0},      [ncclUint32] = {4, false, 0, 0},
    [ncclInt64] = {8, true, 0, 0},      [ncclUint64] = {8, false, 0, 0},
    [ncclFloat16] = {2, true, 5, 10},   [ncclFloat32] = {4, true, 0, 0},
    [ncclFloat64] = {8, true, 0, 0},    [ncclBfloat16] = {2, true, 8, 7},
    [ncclFloat8e4m3] = {1, true, 4, 3}, [ncclFloat8e5m2] = {1, true, 5, 2},
};

size_t value_bytes(ncclDataType_t type)
{
    return types[type].bytes;
}

bool value_signed(ncclDataType_t type)
{
    return types[type].has_sign;
}

double value_of_bits(ncclDataType_t type, unsigned bits)
{
    int exponent_bits = types[type].exponent, mantissa_bits = types[type].mantissa;
    int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    int exponent = (int)(bits >> mantissa_bits) & top;
    int mantissa = (int)bits & ((1 << mantissa_bits) - 1);
    double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;

    if (type == ncclFloat8e4m3 && exponent == top && mantissa == 7)
        return (double)NAN;
    if (type != ncclFloat8e4m3 && exponent == top)
        return mantissa ? (double)NAN : sign * HUGE_VAL;
    if (!exponent)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

static unsigned bits_of_value(ncclDataType_t type, double value)
{
    for (unsigned bits = 0; bits < 1u << (types[type].bytes * 8); bits++)
        if (value_of_bits(type, bits) == value)
            return bits;
    check_failed(__FILE__, __LINE__, "type %d can't hold %g", (int)type, value);
}

double value_load(ncclDataType_t type, const void *array, size_t index)
{
    switch (type) {
    case ncclInt8:
        return ((const int8_t *)array)[index];
    case ncclUint8:
        return ((const uint8_t *)array)[index];
    case ncclInt32:
        return ((const int32_t *)array)[index];
    case ncclUint32:
        return ((const uint32_t *)array)[index];
    case ncclInt64:
        return (double)((const int64_t *)array)[index];
    case ncclUint64:
        return (double)((const uint64_t *)array)[index];
    case ncclFloat32:
        return (double)((const float *)array)[index];
    case ncclFloat64:
        return ((const double *)array)[index];
    case ncclFloat16:
    case ncclBfloat16:
        return value_of_bits(type, ((const uint16_t *)array)[index]);
    default:
        return value_of_bits(type, ((const uint8_t *)array)[index]);
    }
}

void value_store(ncclDataType_t type, void *array, size_t index, double value)
{
    static _Thread_local unsigned cache[ncclNumTypes][256]; /* bits + 1 of -128 to 127 */
    bool small = value >= -128 && value < 128 && value == floor(value);
    unsigned *cached = small ? &cache[type][(int)value + 128] : NULL, bits;

    switch (type) {
    case ncclInt8:
        ((int8_t *)array)[index] = (int8_t)value;
        return;
    case ncclUint8:
        ((uint8_t *)array)[index] = (uint8_t)value;
        return;
    case ncclInt32:
        ((int32_t *)array)[index] = (int32_t)value;
        return;
    case ncclUint32:
        ((uint32_t *)array)[index] = (uint32_t)value;
        return;
    case ncclInt64:
        ((int64_t *)array)[index] = (int64_t)value;
        return;
    case ncclUint64:
        ((uint64_t *)array)[index] = (uint64_t)value;
        return;
    case ncclFloat32:
        ((float *)array)[index] = (float)value;
        return;
    case ncclFloat64:
        ((double *)array)[index] = value;
        return;
    default:
        break;
    }
    bits = cached && *cached ? *cached - 1 : bits_of_value(type, value);
    if (cached)
        *cached = bits + 1;
    if (types[type].bytes == 2)
        ((uint16_t *)array)[index] = (uint16_t)bits;
    else
        ((uint8_t *)array)[index] = (uint8_t)bits;
}
