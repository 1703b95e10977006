/* cases_math.c: convolutions and linear layers in tf32 and bf16. The truth is that of multiplicands
 * rounded as kernels.h says, so what is left is the error of sums in fp32: for each addition half a
 * last place, or a whole one on tensor cores, which cut off (Fasi, Higham, Mikaitis & Pranesh
 * 2021), of a sum that is about as large as the largest result. */
#include "tests/kernels/cases.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/values.h"

#include <math.h>
#include <stdio.h>

static const struct kernels_activation as_it_is = {KERNELS_IDENTITY, 0};

static double round_to_tf32(double value)
{
    int exponent;
    const double fraction = frexp(value, &exponent);

    return ldexp(round(ldexp(fraction, 11)), exponent - 11); /* round(): ties away from zero */
}

static double round_to_bf16(double value)
{
    return reference_widen(reference_narrow(value, 7, -126), 7, -126);
}

static const struct {
    const char *name;
    enum kernels_math math;
    double (*round)(double value);
} formats[] = {
    {"tf32", KERNELS_TF32, round_to_tf32},
    {"bf16", KERNELS_BF16, round_to_bf16},
};

/* How far sums of `inner` products may be off, relative to the largest result. */
static double tolerance(size_t inner)
{
    return 2e-6 + (double)inner * 0x1p-24;
}

/* Values as a kernel reads them and, in truth, as it multiplies them. */
static struct values *multiplicands(size_t count, int format)
{
    struct values *values = values_new(count);

    for (size_t i = 0; i < count; i++)
        values->truth[i] = formats[format].round(values->truth[i]);
    return values;
}

static int between(int low, int high)
{
    return low + (int)(random_uniform() * (high - low + 1));
}

/* Every pass of the convolution `c` and of the transposed one that shares its passes. */
static void passes_agree(const struct conv2d *c, int format)
{
    const size_t x_count = (size_t)c->n * c->c_in * c->h * c->w,
                 y_count = (size_t)c->n * c->c_out * c->y_h * c->y_w;
    const size_t taps = (size_t)c->k * c->k;
    struct values *x = multiplicands(x_count, format),
                  *w = multiplicands(c->c_out * c->c_in * taps, format);
    struct values *g_y = multiplicands(y_count, format), *bias = values_new(c->c_out),
                  *plain = values_new(y_count);
    struct values *y = values_new(y_count), *g_x = values_new(x_count), *g_w = values_new(w->count);
    struct values *turned = values_new(x_count), *turned_bias = values_new(c->c_in);
    const struct kernels_activation leaky = {KERNELS_LEAKY_RELU, 0.25f};
    char name[120];

    snprintf(name, sizeof name, "%s n=%d c_in=%d %dx%d c_out=%d k=%d stride=%d pad=%d",
             formats[format].name, c->n, c->c_in, c->h, c->w, c->c_out, c->k, c->stride, c->pad);
    reference_conv2d_forward(c, x->truth, w->truth, bias->truth, y->truth);
    reference_conv2d_forward(c, x->truth, w->truth, NULL, plain->truth);
    reference_conv2d_backward_data(c, g_y->truth, w->truth, g_x->truth);
    for (size_t i = 0, pixels = (size_t)c->h * c->w; i < x_count; i++)
        turned->truth[i] = g_x->truth[i] + turned_bias->truth[i / pixels % c->c_in];
    reference_conv2d_backward_weight(c, x->truth, g_y->truth, g_w->truth, NULL);
    LAUNCHED(kernels_conv2d_forward(c, x->device, w->device, bias->device, y->device, stream));
    LAUNCHED(
        kernels_conv2d_transposed_backward_data(c, x->device, w->device, plain->device, stream));
    LAUNCHED(kernels_conv2d_backward_data(c, g_y->device, w->device, g_x->device, stream));
    LAUNCHED(kernels_conv2d_transposed_forward_activated(
        c, g_y->device, w->device, turned_bias->device, as_it_is, turned->device, stream));
    LAUNCHED(kernels_conv2d_backward_weight(c, x->device, g_y->device, g_w->device, NULL, stream));
    values_expect(y, tolerance(c->c_in * taps), "conv2d y, %s", name);
    for (size_t i = 0; i < y_count; i++)
        y->truth[i] = reference_leaky_relu(y->truth[i], 0.25);
    LAUNCHED(kernels_conv2d_forward_activated(c, x->device, w->device, bias->device, leaky,
                                              y->device, stream));
    values_expect(y, tolerance(c->c_in * taps), "conv2d y activated, %s", name);
    values_expect(plain, tolerance(c->c_in * taps), "transposed g_x, %s", name);
    values_expect(g_x, tolerance(c->c_out * taps), "conv2d g_x, %s", name);
    values_expect(turned, tolerance(c->c_out * taps), "transposed y, %s", name);
    values_expect(g_w, tolerance(y_count / c->c_out), "conv2d g_w, %s", name);

    /* Two passes add to g_w; the transposed layer's calls its x what is our g_y. */
    reference_conv2d_backward_weight(c, x->truth, g_y->truth, g_w->truth, NULL);
    LAUNCHED(kernels_conv2d_transposed_backward_weight(c, g_y->device, x->device, g_w->device, NULL,
                                                       stream));
    values_expect(g_w, 2 * tolerance(y_count / c->c_out), "transposed g_w, %s", name);
    values_free_all();
}

/* A 1 x 1 layer of one channel shows the rounding itself, to the bit: y = rounded(x) 1, and numbers
 * half way between two of the format are among them. */
static void rounding_is_exact(int format)
{
    enum { COUNT = 4096 };
    const struct conv2d c = conv2d_shape(1, 1, 64, COUNT / 64, 1, 1, 1, 0);
    struct values *x = values_random(COUNT, -4, 4), *one = values_random(1, 1, 1),
                  *y = values_new(COUNT);

    for (size_t i = 0; i < COUNT; i++) {
        if (i % 4 == 0) /* a tie: an odd number of half units */
            x->host[i] = (float)ldexp(2 * between(-1000, 1000) + 1,
                                      formats[format].math == KERNELS_TF32 ? -12 : -9) +
                         (i % 8 ? 2 : -2);
        y->truth[i] = formats[format].round(x->host[i]);
    }
    copy_to_device(x->device, x->host, COUNT * sizeof *x->host);
    LAUNCHED(kernels_conv2d_forward(&c, x->device, one->device, NULL, y->device, stream));
    values_expect(y, 0, "numbers rounded to %s", formats[format].name);
    values_free_all();
}

/* n rows of `in` numbers to `out` each. */
static void linear_agrees(int n, int in, int out, int format)
{
    struct values *x = multiplicands((size_t)n * in, format),
                  *w = multiplicands((size_t)out * in, format);
    struct values *g_y = multiplicands((size_t)n * out, format), *bias = values_new(out),
                  *g_bias = values_new(out);
    struct values *y = values_new(g_y->count), *plain = values_new(y->count),
                  *g_x = values_new(x->count);
    struct values *g_w = values_new(w->count);
    char name[80];

    snprintf(name, sizeof name, "%s n=%d in=%d out=%d", formats[format].name, n, in, out);
    reference_linear_forward(n, in, out, x->truth, w->truth, bias->truth, y->truth);
    reference_linear_forward(n, in, out, x->truth, w->truth, NULL, plain->truth);
    reference_linear_backward(n, in, out, x->truth, w->truth, g_y->truth, g_x->truth, g_w->truth,
                              NULL);
    for (int i = 0; i < n * out; i++) /* a bias's gradient is the sum of what was not rounded */
        g_bias->truth[i % out] += g_y->host[i];
    LAUNCHED(
        kernels_linear_forward(n, in, out, x->device, w->device, bias->device, y->device, stream));
    LAUNCHED(kernels_linear_forward(n, in, out, x->device, w->device, NULL, plain->device, stream));
    LAUNCHED(kernels_linear_backward_data(n, in, out, g_y->device, w->device, g_x->device, stream));
    LAUNCHED(kernels_linear_backward_weight(n, in, out, x->device, g_y->device, g_w->device,
                                            g_bias->device, stream));
    values_expect(y, tolerance(in), "linear y, %s", name);
    values_expect(plain, tolerance(in), "linear y without bias, %s", name);
    values_expect(g_x, tolerance(out), "linear g_x, %s", name);
    values_expect(g_w, tolerance(n), "linear g_w, %s", name);
    values_expect(g_bias, tolerance(n), "linear g_bias, %s", name);
    values_free_all();
}

void case_math(void)
{
    static const struct {
        int n, c_in, h, w, c_out, k, stride, pad;
    } layers[] = {
        {1, 1, 1, 1, 1, 1, 1, 0},   {2, 3, 32, 32, 64, 4, 2, 1}, {3, 64, 8, 8, 40, 4, 2, 1},
        {2, 100, 4, 4, 1, 4, 1, 0}, {1, 5, 9, 7, 70, 5, 3, 3},   {3, 1, 19, 19, 33, 3, 1, 1},
    };
    enum { LAYERS = sizeof layers / sizeof *layers, RANDOM = 7, RANDOM_LINEAR = 4 };

    for (int format = 0; format < (int)(sizeof formats / sizeof *formats); format++) {
        kernels_set_math(formats[format].math);
        rounding_is_exact(format);
        for (int i = 0; i < LAYERS; i++) {
            const struct conv2d c = conv2d_shape(layers[i].n, layers[i].c_in, layers[i].h,
                                                 layers[i].w, layers[i].c_out, layers[i].k,
                                                 layers[i].stride, layers[i].pad);
            passes_agree(&c, format);
        }
        for (int i = 0; i < RANDOM; i++) {
            const int k = between(1, 5);
            const struct conv2d c = conv2d_shape(between(1, 3), between(1, 20), k + between(0, 12),
                                                 k + between(0, 12), between(1, 40), k,
                                                 between(1, 3), between(0, k));
            passes_agree(&c, format);
        }
        linear_agrees(1, 1, 1, format);
        linear_agrees(64, 128, 10, format);
        for (int i = 0; i < RANDOM_LINEAR; i++)
            linear_agrees(between(1, 70), between(1, 150), between(1, 70), format);
    }
    kernels_set_math(KERNELS_FP32);
}
