/* batch_norm.c: batch normalisation, channel by channel; sums in double, which costs nothing beside
 * memory. */
#include "kernels/cpu/twins.h"

#include <math.h>

/* Channel `channel` of image `image` of x[n][channels][pixels]. */
static size_t plane(int image, int channels, int channel, int pixels)
{
    return ((size_t)image * channels + channel) * pixels;
}

static double channel_mean(int n, int channels, int channel, int pixels, const float *x)
{
    double sum = 0;

    for (int image = 0; image < n; image++) {
        const float *row = x + plane(image, channels, channel, pixels);
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < pixels; i++)
            sum += row[i];
    }
    return sum / ((double)n * pixels);
}

/* The sum of the squared distances from `mean`. */
static double channel_squares(int n, int channels, int channel, int pixels, const float *x,
                              double mean)
{
    double sum = 0;

    for (int image = 0; image < n; image++) {
        const float *row = x + plane(image, channels, channel, pixels);
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < pixels; i++)
            sum += (row[i] - mean) * (row[i] - mean);
    }
    return sum;
}

/* y = (x - center) factor + offset for one channel. */
static void channel_map(int n, int channels, int channel, int pixels, const float *x, float center,
                        float factor, float offset, float *y)
{
    for (int image = 0; image < n; image++) {
        const size_t first = plane(image, channels, channel, pixels);
#pragma omp simd
        for (int i = 0; i < pixels; i++)
            y[first + i] = (x[first + i] - center) * factor + offset;
    }
}

void twin_batch_norm_forward(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, c);
    TAKE(int, pixels);
    TAKE(const float *, x);
    TAKE(const float *, gamma);
    TAKE(const float *, beta);
    TAKE(float *, running_mean);
    TAKE(float *, running_var);
    TAKE(float, momentum);
    TAKE(float, epsilon);
    TAKE(float *, mean);
    TAKE(float *, inv_std);
    TAKE(float *, y);
    const double count = (double)n * pixels;

    for (int channel = 0; channel < c; channel++) {
        const double center = channel_mean(n, c, channel, pixels, x);
        const double squares = channel_squares(n, c, channel, pixels, x, center);
        const double unbiased = squares / (count > 1 ? count - 1 : 1);

        mean[channel] = (float)center;
        inv_std[channel] = (float)(1 / sqrt(squares / count + epsilon));
        running_mean[channel] += momentum * ((float)center - running_mean[channel]);
        running_var[channel] += momentum * ((float)unbiased - running_var[channel]);
        channel_map(n, c, channel, pixels, x, mean[channel], inv_std[channel] * gamma[channel],
                    beta[channel], y);
    }
}

void twin_batch_norm_evaluate(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, c);
    TAKE(int, pixels);
    TAKE(const float *, x);
    TAKE(const float *, gamma);
    TAKE(const float *, beta);
    TAKE(const float *, running_mean);
    TAKE(const float *, running_var);
    TAKE(float, epsilon);
    TAKE(float *, y);

    for (int channel = 0; channel < c; channel++)
        channel_map(n, c, channel, pixels, x, running_mean[channel],
                    gamma[channel] / sqrtf(running_var[channel] + epsilon), beta[channel], y);
}

void twin_batch_norm_backward(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, c);
    TAKE(int, pixels);
    TAKE(const float *, x);
    TAKE(const float *, gamma);
    TAKE(const float *, mean);
    TAKE(const float *, inv_std);
    TAKE(const float *, g_y);
    TAKE(float *, g_x);
    TAKE(float *, g_gamma);
    TAKE(float *, g_beta);
    const double count = (double)n * pixels;

    for (int channel = 0; channel < c; channel++) {
        const float center = mean[channel], scale = inv_std[channel];
        double sum = 0, product = 0;

        for (int image = 0; image < n; image++) {
            const size_t first = plane(image, c, channel, pixels);
#pragma omp simd reduction(+ : sum, product)
            for (int i = 0; i < pixels; i++) {
                sum += g_y[first + i];
                product += (double)g_y[first + i] * ((x[first + i] - center) * scale);
            }
        }
        const float mean_sum = (float)(sum / count), mean_product = (float)(product / count);
        for (int image = 0; image < n; image++) {
            const size_t first = plane(image, c, channel, pixels);
#pragma omp simd
            for (int i = 0; i < pixels; i++)
                g_x[first + i] =
                    gamma[channel] * scale *
                    (g_y[first + i] - mean_sum - (x[first + i] - center) * scale * mean_product);
        }
        g_gamma[channel] += (float)product;
        g_beta[channel] += (float)sum;
    }
}
