/* linear.c: the products of a linear layer, and the gradient of a bias. */
#include "kernels/cpu/twins.h"

#include <cblas.h>
#include <string.h>

void twin_linear_forward(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, in);
    TAKE(int, out);
    TAKE(const float *, x);
    TAKE(const float *, w);
    TAKE(const float *, bias);
    TAKE(float *, y);

    for (int row = 0; bias && row < n; row++)
        memcpy(y + (size_t)row * out, bias, sizeof *y * out);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, out, in, 1, x, in, w, in, bias ? 1 : 0, y, out);
}

void twin_linear_backward_data(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, in);
    TAKE(int, out);
    TAKE(const float *, g_y);
    TAKE(const float *, w);
    TAKE(float *, g_x);

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, in, out, 1, g_y, out, w, in, 0, g_x, in);
}

void twin_linear_backward_weight(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, in);
    TAKE(int, out);
    TAKE(const float *, x);
    TAKE(const float *, g_y);
    TAKE(float *, g_w);

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, n, 1, g_y, out, x, in, 1, g_w, in);
}

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
