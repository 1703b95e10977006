/* The measure of generated images: what is 0, what is not, and known values. */
#include "tests/trainer/fixture.h"

#include <math.h>
#include <string.h>

#include "trainer/distance.h"
#include "trainer/random.h"

enum { COUNT = 64, PIXELS = 9 };

static void draw(float *images, float mean, float deviation, uint64_t seed)
{
    for (int i = 0; i < COUNT * PIXELS; i++)
        images[i] = mean + deviation * random_normal(seed, RANDOM_IMAGES, (uint64_t)i);
}

static void equal_sets_have_none(void **state)
{
    (void)state;
    float one[COUNT * PIXELS], other[COUNT * PIXELS];
    draw(one, 0.0f, 1.0f, 1);
    assert_float_equal((float)image_distance(one, one, COUNT, PIXELS), 0.0f, 0.0f);
    for (int i = 0; i < COUNT; i++)
        memcpy(other + i * PIXELS, one + (COUNT - 1 - i) * PIXELS, PIXELS * sizeof *other);
    assert_float_equal((float)image_distance(one, other, COUNT, PIXELS), 0.0f, 0.0f);
}

/* One pixel is one direction, 1 or -1: numbers are carried by as much as they are shifted. */
static void a_shift_is_its_length(void **state)
{
    (void)state;
    float one[COUNT], other[COUNT];
    for (int i = 0; i < COUNT; i++) {
        one[i] = (float)(i * i % 17);
        other[i] = one[i] + 0.25f;
    }
    assert_float_equal((float)image_distance(one, other, COUNT, 1), 0.25f, 1e-6f);
}

/* Along a direction a normal heap is normal: E|x| of a standard normal x is sqrt(2 / pi) = 0.798.
 */
static void images_all_alike_are_far_from_varied_ones(void **state)
{
    (void)state;
    float varied[COUNT * PIXELS], more[COUNT * PIXELS], alike[COUNT * PIXELS];
    draw(varied, 0.0f, 1.0f, 1);
    draw(more, 0.0f, 1.0f, 2);
    draw(alike, 0.0f, 0.0f, 3);
    double floor = image_distance(varied, more, COUNT, PIXELS),
           collapsed = image_distance(varied, alike, COUNT, PIXELS);
    assert_true(fabs(collapsed - 0.798) < 0.1);
    assert_true(floor < 0.3 && floor > 0);
    assert_true(image_distance(alike, varied, COUNT, PIXELS) == collapsed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_sets_have_none),
        cmocka_unit_test(a_shift_is_its_length),
        cmocka_unit_test(images_all_alike_are_far_from_varied_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
