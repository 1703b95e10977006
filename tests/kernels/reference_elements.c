/* reference_elements.c: activations, losses, optimisers and casts in double. */
#include "tests/kernels/reference.h"

#include <math.h>

double reference_leaky_relu(double x, double slope)
{
    return x > 0 ? x : slope * x;
}

double reference_leaky_relu_gradient(double x, double slope)
{
    return x > 0 ? 1 : slope;
}

static double reference_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double reference_tanh_gradient_of_y(double y)
{
    return 1 - y * y;
}

double reference_bce_with_logits(size_t count, const double *x, double target)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += fmax(x[i], 0) - x[i] * target + log1p(exp(-fabs(x[i])));
    return sum / (double)count;
}

void reference_bce_with_logits_backward(size_t count, const double *x, double target, double scale,
                                        double *g_x)
{
    for (size_t i = 0; i < count; i++)
        g_x[i] = scale * (reference_sigmoid(x[i]) - target) / (double)count;
}

double reference_cross_entropy(int n, int classes, const double *x, const int32_t *labels,
                               int32_t *correct)
{
    double loss = 0;

    *correct = 0;
    for (int row = 0; row < n; row++) {
        const double *logits = x + (size_t)row * classes;
        double sum = 0;
        int best = 0;
        for (int i = 0; i < classes; i++) {
            sum += exp(logits[i]);
            best = logits[i] > logits[best] ? i : best;
        }
        loss += log(sum) - logits[labels[row]];
        *correct += best == labels[row];
    }
    return loss / n;
}

void reference_cross_entropy_backward(int n, int classes, const double *x, const int32_t *labels,
                                      double scale, double *g_x)
{
    for (int row = 0; row < n; row++) {
        const double *logits = x + (size_t)row * classes;
        double sum = 0;
        for (int i = 0; i < classes; i++)
            sum += exp(logits[i]);
        for (int i = 0; i < classes; i++)
            g_x[(size_t)row * classes + i] = scale * (exp(logits[i]) / sum - (i == labels[row])) /
                                             n;
    }
}

void reference_adam_step(size_t count, double *w, const double *g, double *m, double *v, double lr,
                         double beta1, double beta2, double epsilon, int step)
{
    for (size_t i = 0; i < count; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        const double m_hat = m[i] / (1 - pow(beta1, step)), v_hat = v[i] / (1 - pow(beta2, step));
        w[i] -= lr * m_hat / (sqrt(v_hat) + epsilon);
    }
}

void reference_sgd_step(size_t count, double *w, const double *g, double *v, double lr,
                        double momentum)
{
    for (size_t i = 0; i < count; i++) {
        v[i] = momentum * v[i] + g[i];
        w[i] -= lr * v[i];
    }
}

uint16_t reference_narrow(double value, int fraction, int least)
{
    const unsigned sign = signbit(value) ? 0x8000 : 0, infinity = (unsigned)(3 - 2 * least)
                                                                  << fraction;
    const double magnitude = fabs(value);

    if (magnitude == 0)
        return (uint16_t)sign;
    if (isinf(magnitude))
        return (uint16_t)(sign | infinity);
    const int exponent = fmax(ilogb(magnitude), least);
    const double last_places =
        rint(ldexp(magnitude, fraction - exponent)); /* to nearest even, as set by default */
    /* Numbers follow each other as their bits do: a carry out of the fraction is one into the
     * exponent. */
    const double bits = ldexp(exponent - least, fraction) + last_places;
    return (uint16_t)(sign | (unsigned)fmin(bits, infinity));
}

double reference_widen(uint16_t bits, int fraction, int least)
{
    const int exponent = (bits & 0x7fff) >> fraction, rest = bits & ((1 << fraction) - 1);
    const int special = 3 - 2 * least; /* all ones: 31 for fp16, 255 for bf16 */
    double value;

    if (exponent == special)
        value = rest ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(rest, least - fraction);
    else
        value = ldexp(rest + (1 << fraction), exponent - 1 + least - fraction);
    return bits & 0x8000 ? -value : value;
}
