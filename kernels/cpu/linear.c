/* linear.c: the products of a linear layer, and the gradient of a bias. */
#include "kernels/cpu/rounding.h"
#include "kernels/cpu/twins.h"

#include <cblas.h>
#include <string.h>

/* The factors as they are multiplied: themselves, or rounded copies in scratch memory. */
static void round_factors(round_function *round, const float **one, size_t one_count,
                          const float **other, size_t other_count)
{
    if (!round)
        return;
    float *copies = scratch_take(one_count + other_count);
    memcpy(copies, *one, one_count * sizeof *copies);
    memcpy(copies + one_count, *other, other_count * sizeof *copies);
    round_all(round, copies, one_count + other_count);
    *one = copies;
    *other = copies + one_count;
}

static void linear_twin_forward(void *const *args, round_function *round)
{
    TAKE(int, n);
    TAKE(int, in);
    TAKE(int, out);
    TAKE(const float *, x);
    TAKE(const float *, w);
    TAKE(const float *, bias);
    TAKE(float *, y);

    round_factors(round, &x, (size_t)n * in, &w, (size_t)out * in);
    for (int row = 0; bias && row < n; row++)
        memcpy(y + (size_t)row * out, bias, sizeof *y * out);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, out, in, 1, x, in, w, in, bias ? 1 : 0,
                y, out);
}

static void linear_twin_backward_data(void *const *args, round_function *round)
{
    TAKE(int, n);
    TAKE(int, in);
    TAKE(int, out);
    TAKE(const float *, g_y);
    TAKE(const float *, w);
    TAKE(float *, g_x);

    round_factors(round, &g_y, (size_t)n * out, &w, (size_t)out * in);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, in, out, 1, g_y, out, w, in, 0, g_x,
                in);
}

static void linear_twin_backward_weight(void *const *args, round_function *round)
{
    TAKE(int, n);
    TAKE(int, in);
    TAKE(int, out);
    TAKE(const float *, x);
    TAKE(const float *, g_y);
    TAKE(float *, g_w);

    round_factors(round, &x, (size_t)n * in, &g_y, (size_t)n * out);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, n, 1, g_y, out, x, in, 1, g_w,
                in);
}

ROUNDED_TWINS(linear, linear_twin, forward)
ROUNDED_TWINS(linear, linear_twin, backward_data)
ROUNDED_TWINS(linear, linear_twin, backward_weight)

void twin_channel_sum(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, channels);
    TAKE(int, pixels);
    TAKE(const float *, x);
    TAKE(float *, sum);

    for (int channel = 0; channel < channels; channel++) {
        double total = 0;
        for (int image = 0; image < n; image++) {
            const float *row = x + ((size_t)image * channels + channel) * pixels;
#pragma omp simd reduction(+ : total)
            for (int i = 0; i < pixels; i++)
                total += row[i];
        }
        sum[channel] += (float)total;
    }
}
