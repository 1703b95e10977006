/* The sampler, the shapes, and IDX files, whole and damaged. */
#include "tests/trainer/fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trainer/data/idx.h"
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

/* --- IDX --- */

static char images_path[] = "/tmp/ddptrain-images-XXXXXX",
            labels_path[] = "/tmp/ddptrain-labels-XXXXXX";

/* Two images of 2 x 3 pixels, and their labels. */
static const unsigned char good_images[] = {0, 0, 8, 3,   0, 0, 0, 2, 0, 0, 0, 2, 0, 0,
                                            0, 3, 0, 255, 0, 0, 0, 0, 1, 2, 3, 4, 5, 255};
static const unsigned char good_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 4, 9};

static void write_file(const char *path, const unsigned char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static int make_files(void **state)
{
    (void)state;
    close(mkstemp(images_path));
    close(mkstemp(labels_path));
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(images_path);
    unlink(labels_path);
    return 0;
}

static void idx_images_are_centred(void **state)
{
    (void)state;
    struct dataset dataset;
    struct error err = {0};
    float pixels[64];
    int32_t label;
    write_file(images_path, good_images, sizeof good_images);
    write_file(labels_path, good_labels, sizeof good_labels);
    assert_int_equal(idx_open(&dataset, images_path, labels_path, 8, &err), 0);
    assert_int_equal(dataset.count, 2);
    assert_int_equal(dataset.classes, 10);
    dataset.read(&dataset, 1, pixels, &label);
    assert_int_equal(label, 9);
    assert_float_equal(pixels[4 * 8 + 4], 1.0f, 1e-6f); /* row 1 of 2, column 2 of 3 */
    assert_float_equal(pixels[0], -1.0f, 1e-6f);
    dataset.close(&dataset);
}

struct damage {
    const char *what; /* must be in the message */
    size_t length;    /* of the file */
    size_t at;        /* where one byte is replaced */
    unsigned char by;
};

static void damaged_idx_files_are_refused(void **state)
{
    (void)state;
    static const struct damage damages[] = {
        {"does not start with two zero bytes", sizeof good_images, 0, 1},
        {"compressed", sizeof good_images, 0, 0x1f},
        {"type 0x0d", sizeof good_images, 2, 0x0d},
        {"1 dimensions, expected 3", sizeof good_images, 3, 1},
        {"damaged header: dimension 0 is 0", sizeof good_images, 7, 0},
        {"damaged header: dimension 0", sizeof good_images, 4, 0xff},
        {"cut off within its header", 10, 2, 8},
        {"cut off", sizeof good_images - 1, 2, 8},
        {"does not start with two zero bytes", 0, 0, 0},
        {"promises 18 bytes of data, it has 12", sizeof good_images, 7, 3},
        {"too long", sizeof good_images, 7, 1},
        {"do not fit into --image", sizeof good_images, 11, 0}, /* 20 rows, written below */
    };
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        unsigned char bytes[sizeof good_images + 200] = {0};
        struct dataset dataset;
        struct error err = {0};
        size_t length = damages[i].length;
        memcpy(bytes, good_images, sizeof good_images);
        bytes[damages[i].at] = damages[i].at == 0 && damages[i].by == 0x1f ? 0x1f : damages[i].by;
        if (damages[i].by == 0x1f)
            bytes[1] = 0x8b;
        if (damages[i].at == 11) {
            bytes[11] = 20;
            length = 16 + 2 * 20 * 3;
        }
        write_file(images_path, bytes, length);
        assert_int_equal(idx_open(&dataset, images_path, NULL, 8, &err), -1);
        if (!strstr(err.text, damages[i].what) || !strstr(err.text, images_path))
            fail_msg("case %zu: expected '%s' and the path in '%s'", i, damages[i].what, err.text);
    }
}

static void labels_must_fit_the_images(void **state)
{
    (void)state;
    struct dataset dataset;
    struct error err = {0};
    unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 1, 4};
    write_file(images_path, good_images, sizeof good_images);
    write_file(labels_path, labels, sizeof labels);
    assert_int_equal(idx_open(&dataset, images_path, labels_path, 8, &err), -1);
    assert_non_null(strstr(err.text, "1 labels for 2 images"));
    assert_int_equal(idx_open(&dataset, images_path, "/nonexistent/labels", 8, &err), -1);
    assert_non_null(strstr(err.text, "can't open /nonexistent/labels"));
    assert_int_equal(idx_open(&dataset, "/tmp", NULL, 8, &err), -1);
    assert_non_null(strstr(err.text, "not a regular file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_the_images),
        cmocka_unit_test(epochs_have_different_orders),
        cmocka_unit_test(shapes_are_drawn_alike_and_all_classes_come),
        cmocka_unit_test(idx_images_are_centred),
        cmocka_unit_test(damaged_idx_files_are_refused),
        cmocka_unit_test(labels_must_fit_the_images),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
