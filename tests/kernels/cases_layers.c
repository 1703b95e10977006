/* cases_layers.c: convolutions, linear layers, batch normalisation. */
#include "tests/kernels/cases.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/values.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static const struct kernels_activation as_it_is = {KERNELS_IDENTITY, 0};

static const double close_enough = 2e-5;

struct shape {
    int n, c_in, h, w, c_out, k, stride, pad;
};

static void describe(const struct shape *s, char text[static 100])
{
    snprintf(text, 100, "n=%d c_in=%d %dx%d c_out=%d k=%d stride=%d pad=%d", s->n, s->c_in, s->h,
             s->w, s->c_out, s->k, s->stride, s->pad);
}

/* Shapes of the DCGAN and the CNN, the corners, and then random ones. */
static const struct shape chosen[] = {
    {1, 1, 1, 1, 1, 1, 1, 0},   {2, 3, 32, 32, 64, 4, 2, 1}, {3, 64, 16, 16, 48, 4, 2, 1},
    {2, 40, 4, 4, 1, 4, 1, 0},  {1, 5, 9, 7, 70, 7, 3, 3},   {1, 2, 3, 3, 2, 7, 2, 6},
    {5, 1, 28, 28, 8, 3, 1, 1}, {2, 2, 5, 11, 3, 1, 3, 0},   {1, 3, 2, 40, 67, 2, 3, 4},
};

enum { RANDOM_SHAPES = 40 };

static int between(int low, int high)
{
    return low + (int)(random_uniform() * (high - low + 1));
}

static struct shape shape_at(size_t i)
{
    if (i < sizeof chosen / sizeof *chosen)
        return chosen[i];
    const int k = between(1, 7);
    return (struct shape){between(1, 4),      between(1, 20), k + between(0, 12),
                          k + between(0, 12), between(1, 20), k,
                          between(1, 3),      between(0, k)};
}

static const size_t shape_count = sizeof chosen / sizeof *chosen + RANDOM_SHAPES;

static void conv2d_agrees(const struct shape *s)
{
    const struct conv2d c =
        conv2d_shape(s->n, s->c_in, s->h, s->w, s->c_out, s->k, s->stride, s->pad);
    const size_t x_count = (size_t)c.n * c.c_in * c.h * c.w,
                 y_count = (size_t)c.n * c.c_out * c.y_h * c.y_w;
    struct values *x = values_new(x_count), *w = values_new((size_t)c.c_out * c.c_in * c.k * c.k);
    struct values *bias = values_new(c.c_out), *y = values_new(y_count),
                  *plain = values_new(y_count);
    struct values *g_y = values_new(y_count), *g_x = values_new(x_count),
                  *g_w = values_new(w->count);
    struct values *g_bias = values_new(c.c_out);
    char name[100];

    describe(s, name);
    reference_conv2d_forward(&c, x->truth, w->truth, bias->truth, y->truth);
    reference_conv2d_forward(&c, x->truth, w->truth, NULL, plain->truth);
    reference_conv2d_backward_data(&c, g_y->truth, w->truth, g_x->truth);
    reference_conv2d_backward_weight(&c, x->truth, g_y->truth, g_w->truth, g_bias->truth);
    LAUNCHED(kernels_conv2d_forward(&c, x->device, w->device, bias->device, y->device, stream));
    LAUNCHED(kernels_conv2d_forward(&c, x->device, w->device, NULL, plain->device, stream));
    LAUNCHED(kernels_conv2d_backward_data(&c, g_y->device, w->device, g_x->device, stream));
    LAUNCHED(kernels_conv2d_backward_weight(&c, x->device, g_y->device, g_w->device, g_bias->device,
                                            stream));
    values_expect(y, close_enough, "conv2d y, %s", name);
    values_expect(plain, close_enough, "conv2d y without bias, %s", name);
    values_expect(g_x, close_enough, "conv2d g_x, %s", name);
    values_expect(g_w, close_enough, "conv2d g_w, %s", name);
    values_expect(g_bias, close_enough, "conv2d g_bias, %s", name);

    /* Added to, not overwritten, and without a bias too. */
    reference_conv2d_backward_weight(&c, x->truth, g_y->truth, g_w->truth, NULL);
    LAUNCHED(kernels_conv2d_backward_weight(&c, x->device, g_y->device, g_w->device, NULL, stream));
    values_expect(g_w, close_enough, "conv2d g_w of two steps, %s", name);
    values_expect(g_bias, close_enough, "conv2d g_bias left alone, %s", name);
    values_free_all();
}

void case_conv2d(void)
{
    for (size_t i = 0; i < shape_count; i++) {
        const struct shape shape = shape_at(i);
        conv2d_agrees(&shape);
    }
}

static const struct kernels_activation fused[] = {{KERNELS_LEAKY_RELU, 0.2f}, {KERNELS_TANH, 0}};
enum { FUSED = sizeof fused / sizeof *fused };

static void activate(const struct kernels_activation *activation, const struct values *plain,
                     struct values *y)
{
    for (size_t i = 0; i < y->count; i++)
        y->truth[i] = activation->kind == KERNELS_TANH
                          ? tanh(plain->truth[i])
                          : reference_leaky_relu(plain->truth[i], activation->slope);
}

/* Both kinds of convolution with an activation of their results, with and without a bias. */
static void activated_agrees(const struct shape *s, const struct kernels_activation *activation,
                             bool with_bias)
{
    const struct conv2d c =
        conv2d_shape(s->n, s->c_in, s->h, s->w, s->c_out, s->k, s->stride, s->pad);
    const size_t x_count = (size_t)c.n * c.c_in * c.h * c.w,
                 y_count = (size_t)c.n * c.c_out * c.y_h * c.y_w;
    struct values *x = values_new(x_count), *w = values_new((size_t)c.c_out * c.c_in * c.k * c.k);
    struct values *bias = values_new(c.c_out), *turned_bias = values_new(c.c_in);
    struct values *plain = values_new(y_count), *y = values_new(y_count);
    struct values *turned_plain = values_new(x_count), *turned = values_new(x_count);
    char name[100];

    describe(s, name);
    reference_conv2d_forward(&c, x->truth, w->truth, with_bias ? bias->truth : NULL, plain->truth);
    activate(activation, plain, y);
    LAUNCHED(kernels_conv2d_forward_activated(
        &c, x->device, w->device, with_bias ? bias->device : NULL, *activation, y->device, stream));
    values_expect(y, close_enough, "conv2d activated (%d), %s", (int)activation->kind, name);
    reference_conv2d_backward_data(&c, y->truth, w->truth, turned_plain->truth);
    for (size_t i = 0, pixels = (size_t)c.h * c.w; with_bias && i < x_count; i++)
        turned_plain->truth[i] += turned_bias->truth[i / pixels % c.c_in];
    activate(activation, turned_plain, turned);
    LAUNCHED(kernels_conv2d_transposed_forward_activated(&c, y->device, w->device,
                                                         with_bias ? turned_bias->device : NULL,
                                                         *activation, turned->device, stream));
    values_expect(turned, 4 * close_enough, "transposed activated (%d), %s", (int)activation->kind,
                  name);
    values_free_all();
}

void case_activated(void)
{
    for (size_t i = 0; i < shape_count; i += 3) {
        const struct shape shape = shape_at(i);
        for (int a = 0; a < FUSED; a++)
            activated_agrees(&shape, &fused[a], i % 2);
    }
}

static void transposed_agrees(const struct transposed *t, const char *name)
{
    const struct conv2d c =
        conv2d_transposed_shape(t->n, t->c_in, t->h, t->w, t->c_out, t->k, t->stride, t->pad);
    const int height = (t->h - 1) * t->stride - 2 * t->pad + t->k,
              width = (t->w - 1) * t->stride - 2 * t->pad + t->k;
    const size_t x_count = (size_t)t->n * t->c_in * t->h * t->w,
                 y_count = (size_t)t->n * t->c_out * height * width;
    struct values *x = values_new(x_count),
                  *w = values_new((size_t)t->c_in * t->c_out * t->k * t->k);
    struct values *bias = values_new(t->c_out), *y = values_new(y_count),
                  *plain = values_new(y_count);
    struct values *g_y = values_new(y_count), *g_x = values_new(x_count),
                  *g_w = values_new(w->count);
    struct values *g_bias = values_new(t->c_out);

    reference_transposed_forward(t, x->truth, w->truth, bias->truth, y->truth);
    reference_transposed_forward(t, x->truth, w->truth, NULL, plain->truth);
    reference_transposed_backward(t, x->truth, w->truth, g_y->truth, g_x->truth, g_w->truth,
                                  g_bias->truth);
    LAUNCHED(kernels_conv2d_transposed_forward_activated(&c, x->device, w->device, bias->device,
                                                         as_it_is, y->device, stream));
    LAUNCHED(kernels_conv2d_transposed_forward_activated(&c, x->device, w->device, NULL, as_it_is,
                                                         plain->device, stream));
    LAUNCHED(
        kernels_conv2d_transposed_backward_data(&c, g_y->device, w->device, g_x->device, stream));
    LAUNCHED(kernels_conv2d_transposed_backward_weight(&c, x->device, g_y->device, g_w->device,
                                                       g_bias->device, stream));
    values_expect(y, close_enough, "transposed y, %s", name);
    values_expect(plain, close_enough, "transposed y without bias, %s", name);
    values_expect(g_x, close_enough, "transposed g_x, %s", name);
    values_expect(g_w, close_enough, "transposed g_w, %s", name);
    values_expect(g_bias, close_enough, "transposed g_bias, %s", name);
    values_free_all();
}

void case_transposed(void)
{
    static const struct transposed generator[] = {
        {2, 100, 1, 1, 64, 4, 1, 0},
        {2, 64, 4, 4, 32, 4, 2, 1},
        {1, 32, 16, 16, 3, 4, 2, 1},
    };
    char name[100];

    for (size_t i = 0; i < sizeof generator / sizeof *generator; i++)
        transposed_agrees(&generator[i], "a layer of the generator");
    for (size_t i = 0; i < shape_count; i++) {
        const struct shape s = shape_at(i);
        /* Small images and a pad that leaves pixels over. */
        const struct transposed t = {s.n,     s.c_in, 1 + s.h / 2, 1 + s.w / 2,
                                     s.c_out, s.k,    s.stride,    s.pad % s.k / 2};
        snprintf(name, sizeof name, "n=%d c_in=%d %dx%d c_out=%d k=%d stride=%d pad=%d", t.n,
                 t.c_in, t.h, t.w, t.c_out, t.k, t.stride, t.pad);
        transposed_agrees(&t, name);
    }
}

void case_linear(void)
{
    static const int sizes[][3] = {
        {1, 1, 1}, {64, 128, 10}, {7, 65, 129}, {130, 3, 2}, {1, 300, 1}};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int n = sizes[i][0], in = sizes[i][1], out = sizes[i][2];
        struct values *x = values_new((size_t)n * in), *w = values_new((size_t)out * in),
                      *bias = values_new(out);
        struct values *y = values_new((size_t)n * out), *plain = values_new(y->count),
                      *g_y = values_new(y->count);
        struct values *g_x = values_new(x->count), *g_w = values_new(w->count),
                      *g_bias = values_new(out);

        reference_linear_forward(n, in, out, x->truth, w->truth, bias->truth, y->truth);
        reference_linear_forward(n, in, out, x->truth, w->truth, NULL, plain->truth);
        reference_linear_backward(n, in, out, x->truth, w->truth, g_y->truth, g_x->truth,
                                  g_w->truth, g_bias->truth);
        LAUNCHED(kernels_linear_forward(n, in, out, x->device, w->device, bias->device, y->device,
                                        stream));
        LAUNCHED(
            kernels_linear_forward(n, in, out, x->device, w->device, NULL, plain->device, stream));
        LAUNCHED(
            kernels_linear_backward_data(n, in, out, g_y->device, w->device, g_x->device, stream));
        LAUNCHED(kernels_linear_backward_weight(n, in, out, x->device, g_y->device, g_w->device,
                                                g_bias->device, stream));
        values_expect(y, close_enough, "linear y, n=%d in=%d out=%d", n, in, out);
        values_expect(plain, close_enough, "linear y without bias, n=%d in=%d out=%d", n, in, out);
        values_expect(g_x, close_enough, "linear g_x, n=%d in=%d out=%d", n, in, out);
        values_expect(g_w, close_enough, "linear g_w, n=%d in=%d out=%d", n, in, out);
        values_expect(g_bias, close_enough, "linear g_bias, n=%d in=%d out=%d", n, in, out);
        values_free_all();
    }
}

static void batch_norm_agrees(int n, int c, int pixels, double center)
{
    const float momentum = 0.1f, epsilon = 1e-5f;
    struct values *x = values_random((size_t)n * c * pixels, center - 1, center + 1),
                  *y = values_new(x->count);
    struct values *gamma = values_new(c), *beta = values_new(c), *mean = values_new(c),
                  *inv_std = values_new(c);
    struct values *running_mean = values_new(c), *running_var = values_random(c, 0.1, 2),
                  *still = values_new(x->count);
    struct values *g_y = values_new(x->count), *g_x = values_new(x->count),
                  *g_gamma = values_new(c);
    struct values *g_beta = values_new(c);
    char name[100];

    snprintf(name, sizeof name, "n=%d c=%d pixels=%d around %g", n, c, pixels, center);
    reference_batch_norm_forward(n, c, pixels, x->truth, gamma->truth, beta->truth,
                                 running_mean->truth, running_var->truth, momentum, epsilon,
                                 mean->truth, inv_std->truth, y->truth);
    reference_batch_norm_evaluate(n, c, pixels, x->truth, gamma->truth, beta->truth,
                                  running_mean->truth, running_var->truth, epsilon, still->truth);
    reference_batch_norm_backward(n, c, pixels, x->truth, gamma->truth, mean->truth, inv_std->truth,
                                  g_y->truth, g_x->truth, g_gamma->truth, g_beta->truth);
    LAUNCHED(kernels_batch_norm_forward(n, c, pixels, x->device, gamma->device, beta->device,
                                        running_mean->device, running_var->device, momentum,
                                        epsilon, mean->device, inv_std->device, y->device, stream));
    LAUNCHED(kernels_batch_norm_evaluate(n, c, pixels, x->device, gamma->device, beta->device,
                                         running_mean->device, running_var->device, epsilon,
                                         still->device, stream));
    LAUNCHED(kernels_batch_norm_backward(n, c, pixels, x->device, gamma->device, mean->device,
                                         inv_std->device, g_y->device, g_x->device, g_gamma->device,
                                         g_beta->device, stream));
    /* A value near `center` has a rounding error of center * 2^-24, which inv_std makes larger. */
    const double tolerance = close_enough * (1 + center);
    values_expect(mean, tolerance, "batch norm mean, %s", name);
    values_expect(inv_std, tolerance, "batch norm inv_std, %s", name);
    values_expect(running_mean, tolerance, "batch norm running mean, %s", name);
    values_expect(running_var, tolerance, "batch norm running variance, %s", name);
    values_expect(y, tolerance, "batch norm y, %s", name);
    values_expect(still, tolerance, "batch norm evaluated, %s", name);
    values_expect(g_x, tolerance, "batch norm g_x, %s", name);
    values_expect(g_gamma, tolerance, "batch norm g_gamma, %s", name);
    values_expect(g_beta, tolerance, "batch norm g_beta, %s", name);
    values_free_all();
}

void case_batch_norm(void)
{
    batch_norm_agrees(4, 8, 64, 0);
    batch_norm_agrees(3, 5, 7, 0);
    batch_norm_agrees(16, 3, 1, 0);
    batch_norm_agrees(1, 2, 1000, 0);
    batch_norm_agrees(2, 70, 9, 0);
    batch_norm_agrees(
        8, 3, 33, 100); /* a mean far from 0: the difference of squares would lose the variance */
    batch_norm_agrees(1, 3, 1, 0); /* a single value: variance 0 */
    batch_norm_agrees(5, 7, 324, 0);
    for (int i = 0; i < 12; i++) /* every other with whole groups of neighbours */
        batch_norm_agrees(between(1, 9), between(1, 9), i % 2 ? 4 * between(1, 90) : between(1, 90),
                          0);
}
