/* Proves the references' gradients: each must be what moving one input a little does to the result.
 */
#include "tests/kernels/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* One operation under test: its inputs, and the weights that make one number, sum(weight y), of its
 * outputs; the weights are at the same time the gradient g_y. */
struct operation {
    const void *shape;
    double *input[3], *y, *g_y;
    size_t y_count;
    void (*forward)(const struct operation *operation);
};

static uint64_t random_state = 0x9e3779b97f4a7c15;

static double random_value(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

static double *random_values(size_t count)
{
    double *values = calloc(count, sizeof *values);

    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = random_value();
    return values;
}

static double *zeros(size_t count)
{
    double *values = calloc(count, sizeof *values);

    assert_non_null(values);
    return values;
}

static double loss(const struct operation *operation)
{
    double sum = 0;

    operation->forward(operation);
    for (size_t i = 0; i < operation->y_count; i++)
        sum += operation->y[i] * operation->g_y[i];
    return sum;
}

static void expect_gradient(const char *name, const struct operation *operation, double *input,
                            size_t count, const double *gradient)
{
    const double step = 1e-5;

    for (size_t i = 0; i < count; i++) {
        const double here = input[i];
        input[i] = here + step;
        const double above = loss(operation);
        input[i] = here - step;
        const double below = loss(operation);
        input[i] = here;
        const double difference = (above - below) / (2 * step);
        if (!(fabs(difference - gradient[i]) <= 1e-7 * (1 + fabs(difference))))
            fail_msg("%s[%zu]: the reference says %.12g, the finite difference %.12g", name, i,
                     gradient[i], difference);
    }
}

static void free_all(double *const *pointers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(pointers[i]);
}

static void conv2d_forward(const struct operation *o)
{
    reference_conv2d_forward(o->shape, o->input[0], o->input[1], o->input[2], o->y);
}

static void conv2d_gradients_are_right(void **state)
{
    static const struct {
        int n, c_in, h, w, c_out, k, stride, pad;
    } shapes[] = {
        {1, 1, 1, 1, 1, 1, 1, 0},
        {2, 2, 5, 4, 3, 3, 1, 1},
        {1, 2, 7, 5, 2, 4, 2, 1},
        {2, 1, 6, 8, 2, 2, 3, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct conv2d c = conv2d_shape(shapes[i].n, shapes[i].c_in, shapes[i].h, shapes[i].w,
                                             shapes[i].c_out, shapes[i].k, shapes[i].stride,
                                             shapes[i].pad);
        const size_t x_count = (size_t)c.n * c.c_in * c.h * c.w,
                     w_count = (size_t)c.c_out * c.c_in * c.k * c.k;
        const size_t y_count = (size_t)c.n * c.c_out * c.y_h * c.y_w;
        double *x = random_values(x_count), *w = random_values(w_count),
               *bias = random_values(c.c_out);
        double *y = zeros(y_count), *g_y = random_values(y_count);
        double *g_x = zeros(x_count), *g_w = zeros(w_count), *g_bias = zeros(c.c_out);
        const struct operation operation = {&c, {x, w, bias}, y, g_y, y_count, conv2d_forward};

        reference_conv2d_backward_data(&c, g_y, w, g_x);
        reference_conv2d_backward_weight(&c, x, g_y, g_w, g_bias);
        expect_gradient("conv2d g_x", &operation, x, x_count, g_x);
        expect_gradient("conv2d g_w", &operation, w, w_count, g_w);
        expect_gradient("conv2d g_bias", &operation, bias, c.c_out, g_bias);
        free_all((double *[]){x, w, bias, y, g_y, g_x, g_w, g_bias}, 8);
    }
}

static void transposed_forward(const struct operation *o)
{
    reference_transposed_forward(o->shape, o->input[0], o->input[1], o->input[2], o->y);
}

static void transposed_gradients_are_right(void **state)
{
    static const struct transposed shapes[] = {
        {1, 1, 1, 1, 1, 1, 1, 0},
        {2, 2, 3, 4, 3, 4, 2, 1},
        {1, 3, 1, 1, 2, 4, 1, 0},
        {2, 1, 4, 3, 2, 3, 3, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct transposed t = shapes[i];
        const int height = (t.h - 1) * t.stride - 2 * t.pad + t.k,
                  width = (t.w - 1) * t.stride - 2 * t.pad + t.k;
        const size_t x_count = (size_t)t.n * t.c_in * t.h * t.w,
                     w_count = (size_t)t.c_in * t.c_out * t.k * t.k;
        const size_t y_count = (size_t)t.n * t.c_out * height * width;
        double *x = random_values(x_count), *w = random_values(w_count),
               *bias = random_values(t.c_out);
        double *y = zeros(y_count), *g_y = random_values(y_count);
        double *g_x = zeros(x_count), *g_w = zeros(w_count), *g_bias = zeros(t.c_out);
        const struct operation operation = {&t, {x, w, bias}, y, g_y, y_count, transposed_forward};

        reference_transposed_backward(&t, x, w, g_y, g_x, g_w, g_bias);
        expect_gradient("transposed g_x", &operation, x, x_count, g_x);
        expect_gradient("transposed g_w", &operation, w, w_count, g_w);
        expect_gradient("transposed g_bias", &operation, bias, t.c_out, g_bias);
        free_all((double *[]){x, w, bias, y, g_y, g_x, g_w, g_bias}, 8);
    }
}

enum { N = 3, C = 2, PIXELS = 5, COUNT = N * C * PIXELS };

static void batch_norm_forward(const struct operation *o)
{
    double mean[C], inv_std[C], running_mean[C] = {0}, running_var[C] = {0};

    reference_batch_norm_forward(N, C, PIXELS, o->input[0], o->input[1], o->input[2], running_mean,
                                 running_var, 0.1, 1e-3, mean, inv_std, o->y);
}

static void batch_norm_gradients_are_right(void **state)
{
    double mean[C], inv_std[C], running_mean[C] = {0}, running_var[C] = {0};
    double *x = random_values(COUNT), *gamma = random_values(C), *beta = random_values(C);
    double *y = zeros(COUNT), *g_y = random_values(COUNT), *g_x = zeros(COUNT);
    double g_gamma[C] = {0}, g_beta[C] = {0};
    const struct operation operation = {NULL, {x, gamma, beta}, y, g_y, COUNT, batch_norm_forward};

    (void)state;
    reference_batch_norm_forward(N, C, PIXELS, x, gamma, beta, running_mean, running_var, 0.1, 1e-3,
                                 mean, inv_std, y);
    reference_batch_norm_backward(N, C, PIXELS, x, gamma, mean, inv_std, g_y, g_x, g_gamma, g_beta);
    expect_gradient("batch norm g_x", &operation, x, COUNT, g_x);
    expect_gradient("batch norm g_gamma", &operation, gamma, C, g_gamma);
    expect_gradient("batch norm g_beta", &operation, beta, C, g_beta);
    free_all((double *[]){x, gamma, beta, y, g_y, g_x}, 6);
}

/* Normalised by its own definition: mean beta, variance gamma^2. */
static void batch_norm_normalises(void **state)
{
    double mean[C], inv_std[C], running_mean[C] = {0}, running_var[C] = {0}, gamma[C] = {2, 3},
                                beta[C] = {5, 7};
    double *x = random_values(COUNT), *y = zeros(COUNT);

    (void)state;
    reference_batch_norm_forward(N, C, PIXELS, x, gamma, beta, running_mean, running_var, 1, 0,
                                 mean, inv_std, y);
    for (int channel = 0; channel < C; channel++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < COUNT; i++)
            if (i / PIXELS % C == channel) {
                sum += y[i];
                squares += (y[i] - beta[channel]) * (y[i] - beta[channel]);
            }
        assert_float_equal(sum / (N * PIXELS), beta[channel], 1e-9);
        assert_float_equal(squares / (N * PIXELS), gamma[channel] * gamma[channel], 1e-9);
        assert_float_equal(running_mean[channel], mean[channel], 1e-12);
        assert_float_equal(running_var[channel] * (N * PIXELS - 1) / (N * PIXELS),
                           pow(inv_std[channel], -2), 1e-9);
    }
    free_all((double *[]){x, y}, 2);
}

static void activation_forward(const struct operation *o)
{
    const int which = *(const int *)o->shape;

    for (size_t i = 0; i < o->y_count; i++) {
        const double x = o->input[0][i];
        o->y[i] = which == 0 ? reference_leaky_relu(x, 0.2) : tanh(x);
    }
}

static void activation_gradients_are_right(void **state)
{
    enum { LENGTH = 50 };
    double *x = random_values(LENGTH), *y = zeros(LENGTH), *g_y = random_values(LENGTH),
           *g_x = zeros(LENGTH);

    (void)state;
    for (int which = 0; which < 2; which++) {
        const struct operation operation = {&which, {x, NULL, NULL}, y,
                                            g_y,    LENGTH,          activation_forward};
        activation_forward(&operation);
        for (int i = 0; i < LENGTH; i++)
            g_x[i] = g_y[i] * (which == 0 ? reference_leaky_relu_gradient(x[i], 0.2)
                                          : reference_tanh_gradient_of_y(y[i]));
        expect_gradient("activation g_x", &operation, x, LENGTH, g_x);
    }
    free_all((double *[]){x, y, g_y, g_x}, 4);
}

static const int32_t labels[N] = {4, 0, 2};

static void losses_forward(const struct operation *o)
{
    int32_t correct;

    o->y[0] = reference_bce_with_logits(N * PIXELS, o->input[0], 0.9);
    o->y[1] = reference_cross_entropy(N, PIXELS, o->input[1], labels, &correct);
}

static void loss_gradients_are_right(void **state)
{
    double *logits = random_values(N * PIXELS), *rows = random_values(N * PIXELS);
    double y[2], g_y[2] = {1.5, -2}, g_logits[N * PIXELS], g_rows[N * PIXELS];
    const struct operation operation = {NULL, {logits, rows, NULL}, y, g_y, 2, losses_forward};

    (void)state;
    reference_bce_with_logits_backward(N * PIXELS, logits, 0.9, g_y[0], g_logits);
    reference_cross_entropy_backward(N, PIXELS, rows, labels, g_y[1], g_rows);
    expect_gradient("bce g_x", &operation, logits, N * PIXELS, g_logits);
    expect_gradient("cross entropy g_x", &operation, rows, N * PIXELS, g_rows);
    free_all((double *[]){logits, rows}, 2);
}

/* Known bits (IEEE 754 binary16; bf16 as the upper half of binary32), so that the casts' reference
 * stands on its own. */
static void casts_know_the_formats(void **state)
{
    static const struct {
        double value;
        uint16_t half, bfloat;
    } known[] = {
        {0.0, 0x0000, 0x0000},         {-0.0, 0x8000, 0x8000},        {1.0, 0x3c00, 0x3f80},
        {-2.0, 0xc000, 0xc000},        {65504, 0x7bff, 0x4780},       {65520, 0x7c00, 0x4780},
        {0x1p-24, 0x0001, 0x3380},     {0x1p-25, 0x0000, 0x3300},     {0x1.8p-24, 0x0002, 0x33c0},
        {1 + 0x1p-11, 0x3c00, 0x3f80}, {1 + 0x3p-11, 0x3c02, 0x3f80}, {1 + 0x1p-8, 0x3c04, 0x3f80},
        {1 + 0x3p-8, 0x3c0c, 0x3f82},  {INFINITY, 0x7c00, 0x7f80},    {0x1p-133, 0x0000, 0x0001},
        {-0x1.ffp127, 0xfc00, 0xff80},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(reference_narrow(known[i].value, 10, -14), known[i].half);
        assert_int_equal(reference_narrow(known[i].value, 7, -126), known[i].bfloat);
    }
    for (unsigned bits = 0; bits <= UINT16_MAX; bits++)
        if (!isnan(reference_widen((uint16_t)bits, 10, -14)))
            assert_int_equal(reference_narrow(reference_widen((uint16_t)bits, 10, -14), 10, -14),
                             bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv2d_gradients_are_right),
        cmocka_unit_test(transposed_gradients_are_right),
        cmocka_unit_test(batch_norm_gradients_are_right),
        cmocka_unit_test(batch_norm_normalises),
        cmocka_unit_test(activation_gradients_are_right),
        cmocka_unit_test(loss_gradients_are_right),
        cmocka_unit_test(casts_know_the_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
