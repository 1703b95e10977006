/* cases_elements.c: activations, losses, optimisers, elementwise arithmetic. */
#include "tests/kernels/cases.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double close_enough = 2e-6;
static const size_t chosen[] = {1, 3, 4, 5, 31, 256, 1000, 70001};
enum { CHOSEN = sizeof chosen / sizeof *chosen, COUNTS = CHOSEN + 6 };

/* The chosen ones, then random ones. */
static size_t count_at(int i)
{
    return i < CHOSEN ? chosen[i] : 1 + (size_t)(random_uniform() * 3000);
}

enum activation { LEAKY_RELU, TANH, ACTIVATIONS };
static const char *const activation_names[] = {"leaky ReLU", "tanh"};
static const float slope = 0.2f;

static double activate(enum activation a, double x)
{
    return a == LEAKY_RELU ? reference_leaky_relu(x, slope) : tanh(x);
}

static double gradient(enum activation a, double x)
{
    const double y = activate(a, x);

    return a == LEAKY_RELU ? reference_leaky_relu_gradient(x, slope)
                           : reference_tanh_gradient_of_y(y);
}

static void launch_forward(enum activation a, const struct values *x, const struct values *y)
{
    if (a == LEAKY_RELU)
        LAUNCHED(kernels_leaky_relu_forward(x->count, slope, x->device, y->device, stream));
    else
        LAUNCHED(kernels_tanh_forward(x->count, x->device, y->device, stream));
}

static void launch_backward(enum activation a, const struct values *saved, const struct values *g_y,
                            const struct values *g_x)
{
    if (a == LEAKY_RELU)
        LAUNCHED(kernels_leaky_relu_backward(saved->count, slope, saved->device, g_y->device,
                                             g_x->device, stream));
    else
        LAUNCHED(
            kernels_tanh_backward(saved->count, saved->device, g_y->device, g_x->device, stream));
}

/* Forward out of place, backward from the output, then both in place. */
static void activation_agrees(enum activation a, size_t count)
{
    struct values *x = values_random(count, -6, 6), *y = values_new(count),
                  *g_y = values_new(count);
    struct values *g_x = values_new(count);
    const char *name = activation_names[a];

    for (size_t i = 0; i < count; i++) {
        y->truth[i] = activate(a, x->truth[i]);
        g_x->truth[i] = g_y->truth[i] * gradient(a, x->truth[i]);
    }
    launch_forward(a, x, y);
    launch_backward(a, y, g_y, g_x);
    values_expect(x, 0, "%s x left alone, %zu", name, count);
    values_expect(y, close_enough, "%s y, %zu", name, count);
    values_expect(g_x, close_enough, "%s g_x, %zu", name, count);
    if (a == LEAKY_RELU) {
        launch_backward(a, x, g_y, g_x);
        values_expect(g_x, close_enough, "%s g_x from x, %zu", name, count);
    }
    memcpy(x->truth, y->truth, count * sizeof *x->truth);
    memcpy(g_y->truth, g_x->truth, count * sizeof *g_x->truth);
    launch_forward(a, x, x);
    launch_backward(a, x, g_y, g_y);
    values_expect(x, close_enough, "%s in place, %zu", name, count);
    values_expect(g_y, close_enough, "%s backward in place, %zu", name, count);
    values_free_all();
}

void case_activations(void)
{
    for (int a = 0; a < ACTIVATIONS; a++)
        for (int i = 0; i < COUNTS; i++)
            activation_agrees((enum activation)a, count_at(i));
}

static void bce_agrees(size_t count, float target)
{
    struct values *x = values_random(count, -30, 30), *loss = values_new(1),
                  *g_x = values_new(count);

    loss->truth[0] = reference_bce_with_logits(count, x->truth, target);
    reference_bce_with_logits_backward(count, x->truth, target, (double)count, g_x->truth);
    LAUNCHED(kernels_bce_with_logits_forward(count, x->device, target, loss->device, stream));
    LAUNCHED(kernels_bce_with_logits_backward(count, x->device, target, (float)count, g_x->device,
                                              stream));
    values_expect(loss, close_enough, "bce loss, %zu towards %g", count, (double)target);
    values_expect(g_x, close_enough, "bce g_x, %zu towards %g", count, (double)target);
    values_free_all();
}

/* Labels are numbers from 0 to classes - 1, and row 1 has two equal largest logits. */
static void cross_entropy_agrees(int n, int classes, bool label_is_second)
{
    struct values *x = values_random((size_t)n * classes, -8, 8), *loss = values_new(1),
                  *g_x = values_new(x->count);
    int32_t *labels = malloc(sizeof *labels * n), *device_labels, *device_correct, correct,
            got = -1;

    MUST(labels ? cudaSuccess : cudaErrorMemoryAllocation);
    for (int i = 0; i < n; i++)
        labels[i] = (int32_t)(random_uniform() * classes);
    if (n > 1 && classes > 2) {
        x->truth[classes] = x->truth[2 * classes - 1] = 9;
        labels[1] = label_is_second ? classes - 1 : 0;
        for (int i = 0; i < classes; i++)
            x->host[classes + i] = (float)x->truth[classes + i];
        copy_to_device(x->device, x->host, sizeof *x->host * x->count);
    }
    MUST(cudaMalloc((void **)&device_labels, sizeof *labels * n));
    MUST(cudaMalloc((void **)&device_correct, sizeof correct));
    copy_to_device(device_labels, labels, sizeof *labels * n);
    loss->truth[0] = reference_cross_entropy(n, classes, x->truth, labels, &correct);
    reference_cross_entropy_backward(n, classes, x->truth, labels, n, g_x->truth);
    LAUNCHED(kernels_cross_entropy_forward(n, classes, x->device, device_labels, loss->device,
                                           device_correct, stream));
    LAUNCHED(kernels_cross_entropy_backward(n, classes, x->device, device_labels, (float)n,
                                            g_x->device, stream));
    values_expect(loss, close_enough, "cross entropy loss, n=%d classes=%d", n, classes);
    values_expect(g_x, close_enough, "cross entropy g_x, n=%d classes=%d", n, classes);
    MUST(cudaMemcpy(&got, device_correct, sizeof got, cudaMemcpyDeviceToHost));
    if (got != correct)
        fail("cross entropy, n=%d classes=%d: expected %d rows correct, got %d", n, classes,
             correct, got);
    MUST(cudaFree(device_labels));
    MUST(cudaFree(device_correct));
    free(labels);
    values_free_all();
}

void case_losses(void)
{
    for (int i = 0; i < COUNTS; i++) {
        bce_agrees(count_at(i), 0);
        bce_agrees(count_at(i), 1);
        bce_agrees(count_at(i), 0.9f);
    }
    cross_entropy_agrees(1, 1, false);
    cross_entropy_agrees(64, 10, false);
    cross_entropy_agrees(64, 10, true);
    cross_entropy_agrees(5, 100, true);
    cross_entropy_agrees(1000, 33, false);
}

void case_optimisers(void)
{
    for (int i = 0; i < COUNTS; i++) {
        const size_t count = count_at(i);
        struct values *w = values_new(count), *g = values_new(count),
                      *m = values_random(count, 0, 0);
        struct values *v = values_random(count, 0, 0);

        for (int step = 1; step <= 5; step++) {
            reference_adam_step(count, w->truth, g->truth, m->truth, v->truth, 2e-4f, 0.5f, 0.999f,
                                1e-8f, step);
            LAUNCHED(kernels_adam_step(count, w->device, g->device, m->device, v->device, 2e-4f,
                                       0.5f, 0.999f, 1e-8f, step, stream));
        }
        values_expect(w, close_enough, "Adam w, %zu", count);
        values_expect(m, close_enough, "Adam m, %zu", count);
        values_expect(v, close_enough, "Adam v, %zu", count);
        for (int step = 1; step <= 3; step++) {
            reference_sgd_step(count, w->truth, g->truth, m->truth, 0.1f, 0.9f);
            LAUNCHED(kernels_sgd_step(count, w->device, g->device, m->device, 0.1f, 0.9f, stream));
        }
        values_expect(w, close_enough, "SGD w, %zu", count);
        values_expect(m, close_enough, "SGD v, %zu", count);
        values_expect(g, 0, "gradient left alone, %zu", count);
        values_free_all();
    }
}

void case_elementwise(void)
{
    for (int c = 0; c < COUNTS; c++) {
        const size_t count = count_at(c);
        struct values *filled = values_new(count), *x = values_new(count), *y = values_new(count);

        LAUNCHED(kernels_fill(count, 0.3f, filled->device, stream));
        LAUNCHED(kernels_add(count, x->device, y->device, stream));
        for (size_t i = 0; i < count; i++) {
            filled->truth[i] = 0.3f;
            y->truth[i] += x->truth[i];
        }
        values_expect(filled, 0, "fill, %zu", count);
        values_expect(y, close_enough, "add, %zu", count);
        LAUNCHED(kernels_scale(count, 1.7f, y->device, stream));
        LAUNCHED(kernels_clip(count, 0.5f, x->device, stream));
        for (size_t i = 0; i < count; i++) {
            y->truth[i] *= 1.7f;
            x->truth[i] = fmin(fmax(x->truth[i], -0.5), 0.5);
        }
        values_expect(y, close_enough, "scale, %zu", count);
        values_expect(x, 0, "clip, %zu", count);
        values_free_all();
    }
}
