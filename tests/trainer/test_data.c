/* The sampler and the shapes. */
#include "tests/trainer/fixture.h"

#include <string.h>

#include "trainer/data/sampler.h"
#include "trainer/data/shapes.h"

/* --- sampler --- */

enum { IMAGES = 10, RANKS = 4 };

/* How often each image comes up in an epoch over all ranks. */
static void count_images(int *counts, int epoch, bool drop_last)
{
    memset(counts, 0, IMAGES * sizeof *counts);
    for (int rank = 0; rank < RANKS; rank++) {
        struct sampler sampler;
        sampler_open(&sampler, IMAGES, rank, RANKS, 7, true, drop_last);
        sampler_set_epoch(&sampler, epoch);
        assert_int_equal(sampler.per_rank, drop_last ? 2 : 3);
        for (size_t place = 0; place < sampler.per_rank; place++)
            counts[sampler_index(&sampler, place)]++;
        sampler_close(&sampler);
    }
}

static void ranks_share_the_images(void **state)
{
    (void)state;
    int counts[IMAGES], repeated = 0, missing = 0;
    count_images(counts, 0, false);
    for (int i = 0; i < IMAGES; i++) {
        assert_in_range(counts[i], 1, 2);
        repeated += counts[i] == 2;
    }
    assert_int_equal(repeated, 2); /* 4 ranks with 3 places for 10 images */
    count_images(counts, 0, true);
    for (int i = 0; i < IMAGES; i++) {
        assert_in_range(counts[i], 0, 1);
        missing += counts[i] == 0;
    }
    assert_int_equal(missing, 2);
}

static void epochs_have_different_orders(void **state)
{
    (void)state;
    struct sampler sampler;
    size_t first[IMAGES];
    sampler_open(&sampler, IMAGES, 0, 1, 7, true, true);
    memcpy(first, sampler.order, sizeof first);
    sampler_set_epoch(&sampler, 1);
    assert_memory_not_equal(first, sampler.order, sizeof first);
    sampler_set_epoch(&sampler, 0);
    assert_memory_equal(first, sampler.order, sizeof first);
    sampler_close(&sampler);

    sampler_open(&sampler, IMAGES, 1, 2, 7, false, true);
    assert_int_equal(sampler_index(&sampler, 0), 1);
    assert_int_equal(sampler_index(&sampler, 4), 9);
    sampler_close(&sampler);
}

/* --- shapes --- */

enum { SIZE = 32 };

static void shapes_are_drawn_alike_and_all_classes_come(void **state)
{
    (void)state;
    struct dataset all, later;
    float pixels[SIZE * SIZE], same[SIZE * SIZE];
    int32_t label, same_label, classes[SHAPES_CLASSES] = {0};
    shapes_open(&all, 3, 0, 200, SIZE);
    shapes_open(&later, 3, 150, 50, SIZE);
    for (size_t i = 0; i < 200; i++) {
        int bright = 0;
        all.read(&all, i, pixels, &label);
        assert_in_range(label, 0, SHAPES_CLASSES - 1);
        classes[label]++;
        for (int k = 0; k < SIZE * SIZE; k++) {
            assert_true(pixels[k] >= -1.0f && pixels[k] <= 1.0f);
            bright += pixels[k] > 0.0f;
        }
        assert_in_range(bright, 50, SIZE * SIZE / 2);
        if (i < 150)
            continue;
        later.read(&later, i - 150, same, &same_label);
        assert_memory_equal(pixels, same, sizeof pixels);
        assert_int_equal(label, same_label);
    }
    for (int i = 0; i < SHAPES_CLASSES; i++)
        assert_true(classes[i] > 20);
    all.close(&all);
    later.close(&later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_the_images),
        cmocka_unit_test(epochs_have_different_orders),
        cmocka_unit_test(shapes_are_drawn_alike_and_all_classes_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
