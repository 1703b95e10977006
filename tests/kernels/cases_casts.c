/* cases_casts.c: casts, compared to the bit. */
#include "tests/kernels/cases.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/values.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How a 16-bit format is reported to reference.h, and the two casts. */
struct format {
    const char *name;
    int fraction, least;
    cudaError_t (*narrow)(size_t count, const float *x, uint16_t *y, cudaStream_t stream);
    cudaError_t (*widen)(size_t count, const uint16_t *x, float *y, cudaStream_t stream);
    cudaError_t (*round)(size_t count, const float *x, float *y, int32_t *overflow,
                         cudaStream_t stream);
};

static const struct format formats[] = {
    {"fp16", 10, -14, kernels_cast_f32_to_f16, kernels_cast_f16_to_f32, kernels_round_to_f16},
    {"bf16", 7, -126, kernels_cast_f32_to_bf16, kernels_cast_bf16_to_f32, kernels_round_to_bf16},
};

enum {
    PATTERNS = 1 << 16,
    PER_PATTERN = 8,
    RANDOM = 1 << 18,
    FLOATS = PATTERNS * PER_PATTERN + RANDOM
};

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void *device_copy(const void *host, size_t bytes)
{
    void *device;

    MUST(cudaMalloc(&device, bytes));
    copy_to_device(device, host, bytes);
    return device;
}

static void *host_memory(size_t bytes)
{
    void *memory = malloc(bytes);

    MUST(memory ? cudaSuccess : cudaErrorMemoryAllocation);
    return memory;
}

/* The bits that a float must become: a NaN keeps its sign and upper payload and is quiet. */
static uint16_t narrowed(const struct format *format, float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t all_ones = (uint32_t)(3 - 2 * format->least) << format->fraction;

    if (!isnan(value))
        return reference_narrow(value, format->fraction, format->least);
    return (uint16_t)((bits >> 16 & 0x8000) | all_ones | 1u << (format->fraction - 1) |
                      (bits & 0x7fffff) >> (23 - format->fraction));
}

/* Each number of the format, its neighbours in fp32, the ties on both sides and theirs, and random
 * bits: all exponents, denormals, infinities and NaNs of fp32. */
static void fill_floats(const struct format *format, float *floats)
{
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        float *here = floats + (size_t)pattern * PER_PATTERN;
        const double value = reference_widen((uint16_t)pattern, format->fraction, format->least);
        const double next =
            reference_widen((uint16_t)(pattern + 1), format->fraction, format->least);
        const float exact = (float)value, tie = (float)((value + next) / 2);
        const float points[PER_PATTERN] = {exact,
                                           nextafterf(exact, INFINITY),
                                           nextafterf(exact, -INFINITY),
                                           tie,
                                           nextafterf(tie, INFINITY),
                                           nextafterf(tie, -INFINITY),
                                           float_of(pattern << 16),
                                           float_of(pattern << 16 | 0x8000)};
        memcpy(here, points, sizeof points);
    }
    for (size_t i = (size_t)PATTERNS * PER_PATTERN; i < FLOATS; i++)
        floats[i] = float_of((uint32_t)(random_uniform() * 0x1p32));
}

static void narrow_agrees(const struct format *format)
{
    float *floats = host_memory(FLOATS * sizeof *floats);
    uint16_t *got = host_memory(FLOATS * sizeof *got);

    fill_floats(format, floats);
    memset(got, 0x5a, FLOATS * sizeof *got);
    float *device_x = device_copy(floats, FLOATS * sizeof *floats);
    uint16_t *device_y = device_copy(got, FLOATS * sizeof *got);
    LAUNCHED(format->narrow(FLOATS, device_x, device_y, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(got, device_y, FLOATS * sizeof *got, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < FLOATS; i++)
        if (got[i] != narrowed(format, floats[i])) {
            fail("fp32 %08x (%.9g) to %s: expected %04x, got %04x", bits_of(floats[i]),
                 (double)floats[i], format->name, narrowed(format, floats[i]), got[i]);
            break;
        }
    MUST(cudaFree(device_x));
    MUST(cudaFree(device_y));
    free(floats);
    free(got);
}

static void widen_agrees(const struct format *format)
{
    uint16_t *patterns = host_memory(PATTERNS * sizeof *patterns);
    float *got = host_memory(PATTERNS * sizeof *got);

    for (unsigned i = 0; i < PATTERNS; i++)
        patterns[i] = (uint16_t)i;
    memset(got, 0x5a, PATTERNS * sizeof *got);
    uint16_t *device_x = device_copy(patterns, PATTERNS * sizeof *patterns);
    float *device_y = device_copy(got, PATTERNS * sizeof *got);
    LAUNCHED(format->widen(PATTERNS, device_x, device_y, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(got, device_y, PATTERNS * sizeof *got, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < PATTERNS; i++) {
        const float value = (float)reference_widen((uint16_t)i, format->fraction, format->least);
        const uint32_t payload = (uint32_t)(i & ((1u << format->fraction) - 1))
                                 << (23 - format->fraction);
        /* fp16's signalling NaNs become quiet, as IEEE 754 has it for conversions; bf16 is half of
         * an fp32, only moved. */
        const uint32_t quiet = format->fraction == 10 ? 0x400000 : 0;
        const uint32_t expected = isnan(value) ? (i & 0x8000u) << 16 | 0x7f800000 | quiet | payload
                                               : bits_of(value);
        if (bits_of(got[i]) != expected) {
            fail("%s %04x to fp32: expected %08x, got %08x", format->name, i, expected,
                 bits_of(got[i]));
            break;
        }
    }
    MUST(cudaFree(device_x));
    MUST(cudaFree(device_y));
    free(patterns);
    free(got);
}

/* Rounds `count` floats in place; returns whether the flag, 0 before, was set. */
static bool rounds(const struct format *format, float *floats, size_t count)
{
    int32_t flag = 0;
    float *device_x = device_copy(floats, count * sizeof *floats);
    int32_t *device_flag = device_copy(&flag, sizeof flag);
    LAUNCHED(format->round(count, device_x, device_x, device_flag, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(floats, device_x, count * sizeof *floats, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(&flag, device_flag, sizeof flag, cudaMemcpyDeviceToHost));
    MUST(cudaFree(device_x));
    MUST(cudaFree(device_flag));
    return flag == 1;
}

static void round_agrees(const struct format *format)
{
    float *floats = host_memory(FLOATS * sizeof *floats), *got = host_memory(FLOATS * sizeof *got);
    size_t finite = 0;

    fill_floats(format, floats);
    for (size_t i = 0; i < FLOATS; i++) {
        const float value =
            (float)reference_widen(narrowed(format, floats[i]), format->fraction, format->least);
        if (isfinite(value))
            floats[finite++] = floats[i];
    }
    memcpy(got, floats, finite * sizeof *got);
    if (rounds(format, got, finite))
        fail("rounding to %s of what it can hold told an overflow", format->name);
    for (size_t i = 0; i < finite; i++) {
        const float value =
            (float)reference_widen(narrowed(format, floats[i]), format->fraction, format->least);
        if (bits_of(got[i]) != bits_of(value)) {
            fail("%.9g rounded to %s: expected %.9g, got %.9g", (double)floats[i], format->name,
                 (double)value, (double)got[i]);
            break;
        }
    }
    const float just_too_large = format->fraction == 10 ? 65520 : 0x1.ffp127f;
    const float bad[] = {just_too_large, -just_too_large, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float some[1000] = {0};
        some[777] = bad[i];
        if (!rounds(format, some, 1000) || isfinite(some[777]))
            fail("rounding %g to %s told no overflow", (double)bad[i], format->name);
    }
    free(floats);
    free(got);
}

void case_casts(void)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        narrow_agrees(&formats[i]);
        widen_agrees(&formats[i]);
        round_agrees(&formats[i]);
    }
}
