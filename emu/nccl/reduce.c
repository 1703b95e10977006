/* reduce.c: combines, scales and divides arrays of any NCCL type. */
#include "emu/nccl/reduce.h"

#include <string.h>

#include "emu/core/smallfloat.h"
#include "emu/nccl/operators.h"

#define AS_IS(x)      (x)
#define FP16_LOAD(x)  smallfloat_load(FP16, x)
#define FP16_STORE(x) (uint16_t) smallfloat_store(FP16, x)
#define E4M3_LOAD(x)  smallfloat_load(FP8_E4M3, x)
#define E4M3_STORE(x) (uint8_t) smallfloat_store(FP8_E4M3, x)
#define E5M2_LOAD(x)  smallfloat_load(FP8_E5M2, x)
#define E5M2_STORE(x) (uint8_t) smallfloat_store(FP8_E5M2, x)

/* TYPE(name in nccl.h, what lies in memory, what is computed with, from memory, to memory) */
#define TYPES(TYPE)                                         \
    TYPE(Int8, int8_t, int, AS_IS, (int8_t))                \
    TYPE(Uint8, uint8_t, unsigned, AS_IS, (uint8_t))        \
    TYPE(Int32, int32_t, int32_t, AS_IS, AS_IS)             \
    TYPE(Uint32, uint32_t, uint32_t, AS_IS, AS_IS)          \
    TYPE(Int64, int64_t, int64_t, AS_IS, AS_IS)             \
    TYPE(Uint64, uint64_t, uint64_t, AS_IS, AS_IS)          \
    TYPE(Float16, uint16_t, float, FP16_LOAD, FP16_STORE)   \
    TYPE(Float32, float, float, AS_IS, AS_IS)               \
    TYPE(Float64, double, double, AS_IS, AS_IS)             \
    TYPE(Bfloat16, uint16_t, float, bf16_load, bf16_store)  \
    TYPE(Float8e4m3, uint8_t, float, E4M3_LOAD, E4M3_STORE) \
    TYPE(Float8e5m2, uint8_t, float, E5M2_LOAD, E5M2_STORE)

#define SUM(a, b)  ((a) + (b))
#define PROD(a, b) ((a) * (b))
/* A NaN loses against a number, as in fmax and fmin. */
#define CHOOSE(better, a, b) ((better) || (b) != (b) ? (a) : (b))
#define MAX(a, b)            CHOOSE((a) > (b), a, b)
#define MIN(a, b)            CHOOSE((a) < (b), a, b)

#define LOOP(name, how, memory, compute, load, store)                                      \
    static void how##_##name(void *restrict into, const void *restrict from, size_t count) \
    {                                                                                      \
        memory *restrict x = into;                                                         \
        const memory *restrict y = from;                                                   \
        for (size_t i = 0; i < count; i++) {                                               \
            compute a = load(x[i]), b = load(y[i]);                                        \
            x[i] = store(how(a, b));                                                       \
        }                                                                                  \
    }

#define LOOPS(name, memory, compute, load, store)                          \
    LOOP(name, SUM, memory, compute, load, store)                          \
    LOOP(name, PROD, memory, compute, load, store)                         \
    LOOP(name, MAX, memory, compute, load, store)                          \
    LOOP(name, MIN, memory, compute, load, store)                          \
    static void scale_##name(const void *scalar, void *data, size_t count) \
    {                                                                      \
        memory *x = data, bits;                                            \
        memcpy(&bits, scalar, sizeof(bits));                               \
        compute factor = load(bits);                                       \
        for (size_t i = 0; i < count; i++)                                 \
            x[i] = store(load(x[i]) * factor);                             \
    }                                                                      \
    static void divide_##name(int divisor, void *data, size_t count)       \
    {                                                                      \
        memory *x = data;                                                  \
        for (size_t i = 0; i < count; i++)                                 \
            x[i] = store(load(x[i]) / (compute)divisor);                   \
    }                                                                      \
    static uint64_t reciprocal_##name(int of)                              \
    {                                                                      \
        memory one_part = store((compute)1 / (compute)of);                 \
        uint64_t bits = 0;                                                 \
        memcpy(&bits, &one_part, sizeof(one_part));                        \
        return bits;                                                       \
    }

TYPES(LOOPS)

#define ROW(name, memory, compute, load, store)                        \
    [nccl##name] = {{SUM_##name, PROD_##name, MAX_##name, MIN_##name}, \
                    scale_##name,                                      \
                    divide_##name,                                     \
                    reciprocal_##name},

static const struct {
    void (*combine[COMBINES])(void *restrict into, const void *restrict from, size_t count);
    void (*scale)(const void *scalar, void *data, size_t count);
    void (*divide)(int divisor, void *data, size_t count);
    uint64_t (*reciprocal)(int of);
} loops[ncclNumTypes] = {TYPES(ROW)};

struct reduction reduction_builtin(ncclRedOp_t op, ncclDataType_t type, int ranks)
{
    static const enum combine combines[] = {
        [ncclSum] = COMBINE_SUM, [ncclProd] = COMBINE_PROD, [ncclMax] = COMBINE_MAX,
        [ncclMin] = COMBINE_MIN, [ncclAvg] = COMBINE_SUM,
    };
    struct reduction reduction = {.op = (int)op, .combine = combines[op]};

    /* NCCL averages floats by multiplying first, which is what keeps fp16 from overflowing, and
     * integers by dividing the sum. */
    if (op == ncclAvg && datatype_is_integer(type)) {
        reduction.divisor = ranks;
    } else if (op == ncclAvg) {
        reduction.scales = true;
        reduction.scalar = loops[type].reciprocal(ranks);
    }
    return reduction;
}

void reduce_combine(enum combine how, ncclDataType_t type, void *into, const void *from,
                    size_t count)
{
    loops[type].combine[how](into, from, count);
}

void reduce_scale(ncclDataType_t type, const void *scalar, void *data, size_t count)
{
    loops[type].scale(scalar, data, count);
}

void reduce_divide(ncclDataType_t type, int divisor, void *data, size_t count)
{
    loops[type].divide(divisor, data, count);
}
