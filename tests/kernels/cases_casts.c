/* cases_casts.c: numbers rounded to 16-bit formats, compared to the bit. */
#include "tests/kernels/cases.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/values.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How a 16-bit format is reported to reference.h, and the kernel that rounds to it. */
struct format {
    const char *name;
    int fraction, least;
    cudaError_t (*round)(size_t count, const float *x, float *y, int32_t *overflow,
                         cudaStream_t stream);
};

static const struct format formats[] = {
    {"fp16", 10, -14, kernels_round_to_f16},
    {"bf16", 7, -126, kernels_round_to_bf16},
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
        round_agrees(&formats[i]);
    }
}
