/* What the trainer writes: PNG files that others can decode, and checkpoints that refuse to be
 * damaged. */
#include "tests/trainer/fixture.h"

#include <png.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/checkpoint.h"
#include "trainer/png_file.h"

static char folder[] = "/tmp/ddptrain-files-XXXXXX";
static char path[64], part[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(part, sizeof part, "%s.part", path);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void a_png_can_be_decoded(void **state)
{
    (void)state;
    enum {
        IMAGE = 4,
        COUNT = 3,
        COLUMNS = 2,
        WIDTH = 2 + COLUMNS * (IMAGE + 2),
        HEIGHT = 2 + 2 * (IMAGE + 2)
    };
    float pixels[COUNT * IMAGE * IMAGE];
    struct error err = {0};
    for (int i = 0; i < COUNT * IMAGE * IMAGE; i++)
        pixels[i] = i / (IMAGE * IMAGE) == 2 ? 7.0f : -1.0f; /* 7: clamped to white */
    assert_int_equal(samples_png_write(path, pixels, COUNT, COLUMNS, IMAGE, &err), 0);
    assert_int_equal(access(part, F_OK), -1);

    png_image png = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_file(&png, path));
    assert_int_equal(png.width, WIDTH);
    assert_int_equal(png.height, HEIGHT);
    png.format = PNG_FORMAT_GRAY;
    unsigned char decoded[WIDTH * HEIGHT];
    assert_true(png_image_finish_read(&png, NULL, decoded, 0, NULL));
    assert_int_equal(decoded[2 * WIDTH + 2], 0);                 /* image 0 */
    assert_int_equal(decoded[(2 + IMAGE + 2) * WIDTH + 2], 255); /* image 2, in the second row */
    assert_int_equal(decoded[0], 64);                            /* border */
}

static void a_png_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    float pixel[16] = {0};
    struct error err = {0};
    assert_int_equal(samples_png_write("/nonexistent/samples.png", pixel, 1, 1, 4, &err), -1);
    assert_non_null(strstr(err.text, "/nonexistent/samples.png"));
}

/* --- checkpoints --- */

struct model {
    struct module module;
    struct layer_batch_norm norm;
    struct optimizer optimizer;
    struct checkpoint_section section;
};

static void open_model(struct model *model, struct device *device, uint64_t seed)
{
    struct adam_settings adam = {.rate = 0.1f};
    module_open(&model->module, "model", device, seed);
    model->norm = layer_batch_norm_new(&model->module, "norm", 3, 1.0f);
    module_parameter(&model->module, "last", "weight", shape_2d(2, 3), 0.0f, 1.0f);
    optimizer_open(&model->optimizer, &model->module, &adam);
    model->section = (struct checkpoint_section){&model->module, &model->optimizer};
}

static void close_model(struct model *model)
{
    optimizer_close(&model->optimizer);
    module_close(&model->module);
}

static void a_checkpoint_restores_everything(void **state)
{
    struct model saved, loaded;
    struct error err = {0};
    struct checkpoint_progress wanted = {.iteration = 34,
                                         .loss_scale = 512.0f,
                                         .steps_without_overflow = 7},
                               got_back;
    float expected[6], got[6];
    open_model(&saved, *state, 1);
    open_model(&loaded, *state, 2);
    saved.optimizer.step = 12;
    tensor_fill(saved.optimizer.square[0], 0.25f);
    tensor_fill(saved.norm.running_var, 3.0f);
    assert_int_equal(checkpoint_save(path, "configuration", &wanted, &saved.section, 1, &err), 0);
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(checkpoint_load(path, "configuration", &got_back, &loaded.section, 1, &err),
                     0);

    assert_int_equal(got_back.iteration, 34);
    assert_float_equal(got_back.loss_scale, 512.0f, 0.0f);
    assert_int_equal(got_back.steps_without_overflow, 7);
    assert_int_equal(loaded.optimizer.step, 12);
    tensor_download(saved.module.parameters[2], expected);
    tensor_download(loaded.module.parameters[2], got);
    assert_memory_equal(expected, got, sizeof expected);
    tensor_download(loaded.optimizer.square[0], got);
    assert_float_equal(got[2], 0.25f, 0.0f);
    tensor_download(loaded.norm.running_var, got);
    assert_float_equal(got[0], 3.0f, 0.0f);
    close_model(&saved);
    close_model(&loaded);
}

static void assert_refused(struct model *model, const char *configuration, const char *why)
{
    struct error err = {0};
    struct checkpoint_progress progress = {.iteration = -5};
    assert_int_equal(checkpoint_load(path, configuration, &progress, &model->section, 1, &err), -1);
    assert_int_equal(progress.iteration, -5);
    if (!strstr(err.text, why))
        fail_msg("expected '%s' in '%s'", why, err.text);
}

static void damaged_checkpoints_are_refused(void **state)
{
    struct model model, other;
    struct error err = {0};
    struct stat status;
    open_model(&model, *state, 1);
    open_model(&other, *state, 1);
    module_parameter(&other.module, "extra", "weight", shape_1d(1), 0.0f, 0.0f);
    other.optimizer.mean[3] = tensor_new(*state, shape_1d(1));
    other.optimizer.square[3] = tensor_new(*state, shape_1d(1));
    assert_int_equal(checkpoint_save(path, "configuration",
                                     &(struct checkpoint_progress){.iteration = 1}, &model.section,
                                     1, &err),
                     0);
    assert_refused(&model, "another", "other options");
    assert_refused(&other, "configuration", "does not fit");
    assert_int_equal(stat(path, &status), 0);

    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, status.st_size / 2, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, status.st_size / 2, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
    assert_refused(&model, "configuration", "damaged");

    /* Cut off at every length down to nothing. */
    for (off_t length = status.st_size - 1; length >= 0; length -= 1 + length / 20) {
        assert_int_equal(truncate(path, length), 0);
        assert_refused(&model, "configuration", path);
    }
    unlink(path);
    assert_refused(&model, "configuration", "can't open");
    close_model(&model);
    close_model(&other);
}

static void a_failed_save_leaves_the_old_checkpoint(void **state)
{
    struct model model;
    struct error err = {0};
    struct checkpoint_progress progress;
    open_model(&model, *state, 1);
    assert_int_equal(checkpoint_save(path, "configuration",
                                     &(struct checkpoint_progress){.iteration = 1}, &model.section,
                                     1, &err),
                     0);
    assert_int_equal(mkdir(part, 0700), 0); /* the temporary name is taken */
    assert_int_equal(checkpoint_save(path, "configuration",
                                     &(struct checkpoint_progress){.iteration = 2}, &model.section,
                                     1, &err),
                     -1);
    assert_non_null(strstr(err.text, part));
    assert_int_equal(rmdir(part), 0);
    assert_int_equal(checkpoint_load(path, "configuration", &progress, &model.section, 1, &err), 0);
    assert_int_equal(progress.iteration, 1);
    close_model(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_png_can_be_decoded),
        cmocka_unit_test(a_png_that_cannot_be_written_is_an_error),
        cmocka_unit_test_setup_teardown(a_checkpoint_restores_everything, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(damaged_checkpoints_are_refused, open_device, close_device),
        cmocka_unit_test_setup_teardown(a_failed_save_leaves_the_old_checkpoint, open_device,
                                        close_device),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
