/* loss.c: losses as one number, and the gradient of softmax cross entropy. */
#include "kernels/cpu/twins.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

void twin_bce_with_logits_forward(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(size_t, count);
    TAKE(const float *, x);
    TAKE(float, target);
    TAKE(float *, loss);
    double sum = 0;

    for (size_t i = 0; i < count;
         i++) /* not fmaxf: a NaN has to reach the sum, as it does through expf */
        sum += (x[i] > 0 ? x[i] : 0) - x[i] * target + log1pf(expf(-fabsf(x[i])));
    *loss = (float)(sum / (double)count);
}

/* The largest logit of a row and the sum of exp(logit - largest). */
static void row_scale(const float *row, int classes, float *largest, double *sum)
{
    *largest = -INFINITY;
    *sum = 0;
    for (int i = 0; i < classes; i++)
        *largest = fmaxf(*largest, row[i]);
    for (int i = 0; i < classes; i++)
        *sum += expf(row[i] - *largest);
}

/* Whether the label's logit is the row's largest, the first one of equals. A NaN anywhere: it is
 * not. */
static bool row_is_correct(const float *row, int classes, int label)
{
    for (int i = 0; i < classes; i++)
        if (!(row[i] < row[label] || (row[i] == row[label] && i >= label)))
            return false;
    return true;
}

void twin_cross_entropy_forward(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, classes);
    TAKE(const float *, x);
    TAKE(const int32_t *, labels);
    TAKE(float *, loss);
    TAKE(int32_t *, correct);
    double total = 0;
    int32_t hits = 0;

    for (int row = 0; row < n; row++) {
        const float *logits = x + (size_t)row * classes;
        const int label = labels[row];
        float largest;
        double sum;

        if (label < 0 || label >= classes) { /* as the kernel: the loss says so by being NaN */
            total = NAN;
            continue;
        }
        row_scale(logits, classes, &largest, &sum);
        total += log(sum) + largest - logits[label];
        hits += row_is_correct(logits, classes, label);
    }
    *loss = (float)(total / n);
    *correct = hits;
}

void twin_cross_entropy_backward(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    TAKE(int, n);
    TAKE(int, classes);
    TAKE(const float *, x);
    TAKE(const int32_t *, labels);
    TAKE(float, scale);
    TAKE(float *, g_x);

    for (int row = 0; row < n; row++) {
        const float *logits = x + (size_t)row * classes;
        float largest;
        double sum;

        row_scale(logits, classes, &largest, &sum);
        for (int i = 0; i < classes; i++)
            g_x[(size_t)row * classes + i] =
                scale / (float)n *
                ((float)(expf(logits[i] - largest) / sum) - (i == labels[row] ? 1 : 0));
    }
}
