/* All values of the small floats, and what lies between them, against the formats' definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emu/core/smallfloat.h"
#include "tests/emu_nccl/ranks.h"
#include "tests/emu_nccl/values.h"

/* values.c is linked without the ranks. */
void check_failed(const char *file, int line, const char *format, ...)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, format);
    abort();
}

static float load(ncclDataType_t type, unsigned bits)
{
    switch (type) {
    case ncclFloat16:
        return smallfloat_load(FP16, bits);
    case ncclBfloat16:
        return bf16_load((uint16_t)bits);
    case ncclFloat8e4m3:
        return smallfloat_load(FP8_E4M3, bits);
    default:
        return smallfloat_load(FP8_E5M2, bits);
    }
}

static unsigned store(ncclDataType_t type, double value)
{
    switch (type) {
    case ncclFloat16:
        return smallfloat_store(FP16, (float)value);
    case ncclBfloat16:
        return bf16_store((float)value);
    case ncclFloat8e4m3:
        return smallfloat_store(FP8_E4M3, (float)value);
    default:
        return smallfloat_store(FP8_E5M2, (float)value);
    }
}

static const ncclDataType_t small_types[] = {ncclFloat16, ncclBfloat16, ncclFloat8e4m3,
                                             ncclFloat8e5m2};

static void every_value_survives(void **state)
{
    (void)state;
    for (size_t t = 0; t < 4; t++) {
        unsigned count = 1u << (value_bytes(small_types[t]) * 8);

        for (unsigned bits = 0; bits < count; bits++) {
            double expected = value_of_bits(small_types[t], bits);
            float got = load(small_types[t], bits);

            if (isnan(expected)) {
                assert_true(isnan(got));
                assert_true(
                    isnan(value_of_bits(small_types[t], store(small_types[t], (double)got))));
            } else {
                assert_true((double)got == expected);
                if (!isinf(expected) || value_bytes(small_types[t]) == 2)
                    assert_int_equal(store(small_types[t], expected), bits);
            }
        }
    }
}

/* Between two neighbours: the nearer one, in the middle the even one. */
static void rounds_to_nearest_even(void **state)
{
    (void)state;
    for (size_t t = 0; t < 4; t++) {
        unsigned count = 1u << (value_bytes(small_types[t]) * 8 - 1);

        for (unsigned bits = 0; bits + 1 < count; bits++) {
            double low = value_of_bits(small_types[t], bits),
                   high = value_of_bits(small_types[t], bits + 1);
            double middle = low + (high - low) / 2, step = (high - low) / 8;

            if (!isfinite(low) || !isfinite(high) || (double)(float)middle != middle)
                continue;
            assert_int_equal(store(small_types[t], middle), bits + bits % 2);
            assert_int_equal(store(small_types[t], middle - step), bits);
            assert_int_equal(store(small_types[t], middle + step), bits + 1);
        }
    }
}

static void overflows_as_on_a_gpu(void **state)
{
    (void)state;
    assert_int_equal(store(ncclFloat16, 65504.0), 0x7bff);
    assert_int_equal(store(ncclFloat16, 65519.0), 0x7bff);
    assert_int_equal(store(ncclFloat16, 65520.0), 0x7c00);
    assert_int_equal(store(ncclFloat16, -1e30), 0xfc00);
    assert_int_equal(store(ncclFloat8e4m3, 1e30), 0x7e);
    assert_int_equal(store(ncclFloat8e4m3, -HUGE_VAL), 0xfe);
    assert_int_equal(store(ncclFloat8e5m2, 1e30), 0x7b);
    assert_int_equal(store(ncclBfloat16, 3.4e38), 0x7f80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_survives),
        cmocka_unit_test(rounds_to_nearest_even),
        cmocka_unit_test(overflows_as_on_a_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
