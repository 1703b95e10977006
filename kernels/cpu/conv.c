/* conv.c: convolutions as products of the weights with the matrix of image patches ("im2col"). That
 * matrix has a row per (input channel, tap row, tap column) and a column per pixel of y; only as
 * many columns as fit the cache are made at a time. */
#include "kernels/activation.h"
#include "kernels/cpu/rounding.h"
#include "kernels/cpu/twins.h"
#include "kernels/kernels.h"

#include <cblas.h>
#include <stdbool.h>
#include <string.h>

enum { CACHED_FLOATS = 256 * 1024, LEAST_COLUMNS = 16 };

/* A range of columns: pixels first .. first + count - 1 of y, counted through all images. */
struct columns {
    int first, count;
};

/* A piece of the columns in one row of one image of y. */
struct tap_run {
    int image, h, w, length;
};

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static struct tap_run run_first(const struct conv2d *c, struct columns columns)
{
    const int pixels = c->y_h * c->y_w, pixel = columns.first % pixels;
    const struct tap_run run = {columns.first / pixels, pixel / c->y_w, pixel % c->y_w, 0};

    return (struct tap_run){run.image, run.h, run.w, min_int(c->y_w - run.w, columns.count)};
}

static struct tap_run run_next(const struct conv2d *c, struct tap_run run, int left)
{
    const int last = run.h + 1 == c->y_h;

    return (struct tap_run){run.image + last, last ? 0 : run.h + 1, 0, min_int(c->y_w, left)};
}

/* Copies between a run of the patch matrix and the image row that tap (tap_h, tap_w) meets: from
 * the image to the matrix, with 0 for the padding, or added from the matrix to the image. */
static inline void move_run(const struct conv2d *c, struct tap_run run, int tap_h, int tap_w,
                            float *image, float *patch, int to_image)
{
    const int h = run.h * c->stride - c->pad + tap_h, w = run.w * c->stride - c->pad + tap_w;
    const int inside = h >= 0 && h < c->h && w < c->w;
    int begin = run.length, end = run.length;
    float *pixel = image + (ptrdiff_t)h * c->w +
                   w; /* of column 0; only read and written inside the image */

    if (inside) {
        begin = w >= 0 ? 0 : min_int(run.length, (c->stride - 1 - w) / c->stride);
        end = max_int(begin, min_int(run.length, (c->w - w + c->stride - 1) / c->stride));
    }
    if (to_image) {
        for (int i = begin; i < end; i++)
            pixel[(ptrdiff_t)i * c->stride] += patch[i];
        return;
    }
    for (int i = 0; i < begin; i++)
        patch[i] = 0;
    if (c->stride == 1 && end > begin)
        memcpy(patch + begin, pixel + begin, sizeof *patch * (size_t)(end - begin));
    else
        for (int i = begin; i < end; i++)
            patch[i] = pixel[(ptrdiff_t)i * c->stride];
    for (int i = end; i < run.length; i++)
        patch[i] = 0;
}

static void move_patches(const struct conv2d *c, struct columns columns, float *images,
                         float *patches, int to_image)
{
    for (int channel = 0; channel < c->c_in; channel++)
        for (int tap = 0; tap < c->k * c->k; tap++) {
            struct tap_run run = run_first(c, columns);
            for (int done = 0; done < columns.count;) {
                float *image = images + ((size_t)run.image * c->c_in + channel) * c->h * c->w;
                move_run(c, run, tap / c->k, tap % c->k, image, patches + done, to_image);
                done += run.length;
                run = run_next(c, run, columns.count - done);
            }
            patches += columns.count;
        }
}

static void patches_from_images(const struct conv2d *c, struct columns columns, const float *images,
                                float *patches)
{
    move_patches(c, columns, (float *)images, patches, 0);
}

static void patches_add_to_images(const struct conv2d *c, struct columns columns,
                                  const float *patches, float *images)
{
    move_patches(c, columns, images, (float *)patches, 1);
}

/* Copies the columns between y[n][c_out][y_h][y_w] and matrix[c_out][count]. */
static void move_pixels(const struct conv2d *c, struct columns columns, float *y, float *matrix,
                        int to_y)
{
    const int pixels = c->y_h * c->y_w;

    for (int channel = 0; channel < c->c_out; channel++)
        for (int done = 0, length; done < columns.count; done += length) {
            const int image = (columns.first + done) / pixels,
                      pixel = (columns.first + done) % pixels;
            float *in_y = y + ((size_t)image * c->c_out + channel) * pixels + pixel;
            float *in_matrix = matrix + (size_t)channel * columns.count + done;
            length = min_int(columns.count - done, pixels - pixel);
            if (to_y)
                memcpy(in_y, in_matrix, sizeof *y * (size_t)length);
            else
                memcpy(in_matrix, in_y, sizeof *y * (size_t)length);
        }
}

static int inner_size(const struct conv2d *c)
{
    return c->c_in * c->k * c->k;
}

static int all_columns(const struct conv2d *c)
{
    return c->n * c->y_h * c->y_w;
}

/* The next piece of columns from `first`, such that patches and pixels fit the cache. */
static struct columns columns_from(const struct conv2d *c, int first)
{
    const int fitting = max_int(LEAST_COLUMNS, CACHED_FLOATS / (inner_size(c) + c->c_out));

    return (struct columns){first, min_int(all_columns(c) - first, fitting)};
}

/* Goes on to the next piece, from {0} to the first; false when there is none. */
static bool columns_next(const struct conv2d *c, struct columns *columns)
{
    *columns = columns_from(c, columns->first + columns->count);
    return columns->count > 0;
}

/* Scratch for the largest piece of columns, and the weights as they are multiplied. */
struct matrices {
    float *patches, *pixels;
    const float *weights;
};

static struct matrices take_matrices(const struct conv2d *c, const float *weights,
                                     round_function *round)
{
    const size_t count = (size_t)columns_from(c, 0).count, inner = (size_t)inner_size(c);
    const size_t of_weights = weights && round ? c->c_out * inner : 0;
    float *scratch = scratch_take(count * (inner + c->c_out) + of_weights);
    float *rounded = scratch + count * (inner + c->c_out);

    if (of_weights > 0) {
        memcpy(rounded, weights, of_weights * sizeof *rounded);
        round_all(round, rounded, of_weights);
        weights = rounded;
    }
    return (struct matrices){scratch, scratch + count * inner, weights};
}

static void activate_all(struct kernels_activation activation, float *values, size_t count)
{
    for (size_t i = 0; activation.kind != KERNELS_IDENTITY && i < count; i++)
        values[i] = activated(activation, values[i]);
}

static void conv_twin_forward(void *const *args, round_function *round)
{
    TAKE(struct conv2d, c);
    TAKE(const float *, x);
    TAKE(const float *, w);
    TAKE(const float *, bias);
    TAKE(struct kernels_activation, activation);
    TAKE(float *, y);
    const int inner = inner_size(&c);
    const struct matrices m = take_matrices(&c, w, round);
    struct columns columns = {0};

    while (columns_next(&c, &columns)) {
        patches_from_images(&c, columns, x, m.patches);
        round_all(round, m.patches, (size_t)inner * columns.count);
        for (int i = 0; bias && i < c.c_out * columns.count; i++)
            m.pixels[i] = bias[i / columns.count];
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, c.c_out, columns.count, inner, 1,
                    m.weights, inner, m.patches, columns.count, bias ? 1 : 0, m.pixels,
                    columns.count);
        activate_all(activation, m.pixels, (size_t)c.c_out * columns.count);
        move_pixels(&c, columns, y, m.pixels, 1);
    }
}

static void conv_twin_backward_data(void *const *args, round_function *round)
{
    TAKE(struct conv2d, c);
    TAKE(const float *, g_y);
    TAKE(const float *, w);
    TAKE(const float *, bias);
    TAKE(struct kernels_activation, activation);
    TAKE(float *, g_x);
    const int inner = inner_size(&c);
    const size_t area = (size_t)c.h * c.w;
    const struct matrices m = take_matrices(&c, w, round);
    struct columns columns = {0};

    for (size_t image = 0; image < (size_t)c.n * c.c_in; image++)
        for (size_t i = 0; i < area; i++)
            g_x[image * area + i] = bias ? bias[image % c.c_in] : 0;
    while (columns_next(&c, &columns)) {
        move_pixels(&c, columns, (float *)g_y, m.pixels, 0);
        round_all(round, m.pixels, (size_t)c.c_out * columns.count);
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, inner, columns.count, c.c_out, 1,
                    m.weights, inner, m.pixels, columns.count, 0, m.patches, columns.count);
        patches_add_to_images(&c, columns, m.patches, g_x);
    }
    activate_all(activation, g_x, (size_t)c.n * c.c_in * area);
}

static void conv_twin_backward_weight(void *const *args, round_function *round)
{
    TAKE(struct conv2d, c);
    TAKE(const float *, x);
    TAKE(const float *, g_y);
    TAKE(float *, g_w);
    const int inner = inner_size(&c);
    const struct matrices m = take_matrices(&c, NULL, round);
    struct columns columns = {0};

    while (columns_next(&c, &columns)) {
        patches_from_images(&c, columns, x, m.patches);
        round_all(round, m.patches, (size_t)inner * columns.count);
        move_pixels(&c, columns, (float *)g_y, m.pixels, 0);
        round_all(round, m.pixels, (size_t)c.c_out * columns.count);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, c.c_out, inner, columns.count, 1,
                    m.pixels, columns.count, m.patches, columns.count, 1, g_w, inner);
    }
}

ROUNDED_TWINS(conv2d, conv_twin, forward)
ROUNDED_TWINS(conv2d, conv_twin, backward_data)
ROUNDED_TWINS(conv2d, conv_twin, backward_weight)
