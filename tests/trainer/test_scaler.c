/* Dynamic loss scaling: when the scale moves, when a step may be made, and that an overflow on any
 * device counts. */
#include "tests/trainer/fixture.h"

#include <math.h>

#include "trainer/check.h"
#include "trainer/module.h"
#include "trainer/operations.h"
#include "trainer/scaler.h"

enum { GROWTH_INTERVAL = 3 };

struct set {
    struct device *device;
    struct communicator communicator;
    struct scaler scaler;
};

static struct set *open_set(struct device *device, enum precision precision, bool agrees)
{
    struct set *set = malloc(sizeof *set);
    ncclUniqueId id;
    assert_non_null(set);
    CHECK_NCCL(ncclGetUniqueId(&id));
    set->device = device;
    communicator_connect(&set->communicator, "test", device, 0, 1, &id, NULL);
    scaler_open(&set->scaler, device, &set->communicator, precision,
                &(struct scaler_settings){.on = precision == PRECISION_FP16,
                                          .first_scale = 1024,
                                          .growth_interval = GROWTH_INTERVAL,
                                          .agrees = agrees});
    return set;
}

static void close_set(struct set *set)
{
    scaler_close(&set->scaler);
    communicator_close(&set->communicator);
    free(set);
}

/* Rounds a value as layers do; 1e6 is too large for fp16. */
static void compute(struct device *device, float value)
{
    CHECK_CUDA(cudaSetDevice(device->index));
    struct tensor *x = tensor_new_on_tape(device, shape_1d(5));
    tensor_fill(x, value);
    op_round(x);
    device_wait_for_compute(device);
    device_end_batch(device);
}

/* An iteration; returns whether a step was allowed. */
static bool iterate(struct set *set, float value)
{
    static int iteration;
    compute(set->device, value);
    bool step = scaler_agrees_to_step(&set->scaler);
    scaler_update(&set->scaler, iteration++);
    return step;
}

static void the_scale_follows_overflows(void **state)
{
    for (int agrees = 0; agrees < 2; agrees++) {
        struct set *set = open_set(*state, PRECISION_FP16, agrees);
        const float *scale = &set->device->loss_scale;
        assert_float_equal(*scale, 1024, 0);
        for (int i = 0; i < GROWTH_INTERVAL; i++) {
            assert_float_equal(*scale, 1024, 0);
            assert_true(iterate(set, 1));
        }
        assert_float_equal(*scale, 2048, 0); /* as many in a row without an overflow */
        assert_true(iterate(set, 1));
        assert_true(iterate(set, 1));
        assert_false(iterate(set, 1e6f));
        assert_float_equal(*scale, 1024, 0);
        for (int i = 0; i < GROWTH_INTERVAL - 1;
             i++) /* the count began anew; the flag is not left set */
            assert_true(iterate(set, 65504));
        assert_float_equal(*scale, 1024, 0);
        assert_false(iterate(set, INFINITY));
        assert_false(iterate(set, NAN));
        assert_float_equal(*scale, 256, 0);
        close_set(set);
    }
}

static void bf16_and_fp32_have_none(void **state)
{
    const enum precision precisions[] = {PRECISION_BF16, PRECISION_FP32};
    for (int i = 0; i < 2; i++) {
        struct set *set = open_set(*state, precisions[i], true);
        assert_true(iterate(set, 1e6f));
        assert_true(
            iterate(set, INFINITY)); /* as without mixed precision: the user sees it in the loss */
        assert_float_equal(set->device->loss_scale, 1, 0);
        close_set(set);
    }
}

/* It was in iteration 2 of 3 towards growth. */
static void a_restored_state_goes_on(void **state)
{
    struct set *set = open_set(*state, PRECISION_FP16, true);
    scaler_restore(&set->scaler, 512, GROWTH_INTERVAL - 1);
    assert_float_equal(set->device->loss_scale, 512, 0);
    assert_true(iterate(set, 1));
    assert_float_equal(set->device->loss_scale, 1024, 0);
    close_set(set);
}

static void gradients_are_divided(void **state)
{
    struct set *set = open_set(*state, PRECISION_FP16, true);
    struct module module;
    struct gradients gradients;
    float value;
    module_open(&module, "test", set->device, 1);
    module_parameter(&module, "layer", "weight", shape_1d(1), 0, 1);
    gradients_open(&gradients, &module);
    tensor_fill(gradients.all, 3 * 1024);
    scaler_divide(&set->scaler, &gradients);
    tensor_download(gradients.all, &value);
    assert_float_equal(value, 3, 0);
    gradients_close(&gradients);
    module_close(&module);
    close_set(set);
}

/* --mode dp and mirrored: one process with several devices. */
static void an_overflow_on_any_device_counts(void **state)
{
    struct set *set = open_set(*state, PRECISION_FP16, true);
    struct device other;
    device_open(&other, 1);
    scaler_add_device(&set->scaler, &other);
    assert_int_equal(other.precision, PRECISION_FP16);
    assert_float_equal(other.loss_scale, 1024, 0);
    assert_true(iterate(set, 1));
    compute(&other, 1e6f);
    assert_false(scaler_is_finite_here(&set->scaler));
    assert_false(iterate(set, 1));
    assert_float_equal(other.loss_scale, 512, 0);
    assert_float_equal(set->device->loss_scale, 512, 0);
    assert_true(iterate(set, 1)); /* both flags were cleared */
    scaler_drop_device(&set->scaler, &other);
    assert_null(other.overflow);
    device_close(&other);
    CHECK_CUDA(cudaSetDevice(set->device->index));
    assert_true(iterate(set, 1));
    close_set(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_scale_follows_overflows, open_device, close_device),
        cmocka_unit_test_setup_teardown(bf16_and_fp32_have_none, open_device, close_device),
        cmocka_unit_test_setup_teardown(a_restored_state_goes_on, open_device, close_device),
        cmocka_unit_test_setup_teardown(gradients_are_divided, open_device, close_device),
        cmocka_unit_test_setup_teardown(an_overflow_on_any_device_counts, open_device,
                                        close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
