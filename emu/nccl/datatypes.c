/* datatypes.c: sizes and validity of NCCL's element types. */
#include "emu/nccl/datatypes.h"

#include <stdint.h>

static const struct {
    unsigned char bytes;
    bool integer;
} types[ncclNumTypes] = {
    [ncclInt8] = {1, true},      [ncclUint8] = {1, true},       [ncclInt32] = {4, true},
    [ncclUint32] = {4, true},    [ncclInt64] = {8, true},       [ncclUint64] = {8, true},
    [ncclFloat16] = {2, false},  [ncclFloat32] = {4, false},    [ncclFloat64] = {8, false},
    [ncclBfloat16] = {2, false}, [ncclFloat8e4m3] = {1, false}, [ncclFloat8e5m2] = {1, false},
};

bool datatype_valid(ncclDataType_t type)
{
    return (int)type >= 0 && type < ncclNumTypes;
}

size_t datatype_bytes(ncclDataType_t type)
{
    return types[type].bytes;
}

bool datatype_is_integer(ncclDataType_t type)
{
    return types[type].integer;
}

size_t datatype_total(ncclDataType_t type, size_t count)
{
    size_t total;

    return __builtin_mul_overflow(count, datatype_bytes(type), &total) ? SIZE_MAX : total;
}
