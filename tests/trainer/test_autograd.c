/* Gradients of every operation against finite differences, and the version counters. */
#include "tests/trainer/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/autograd.h"
#include "trainer/operations.h"

enum { MAX_LEAVES = 4 };

/* A small graph: leaves to one number. */
struct graph {
    const char *name;
    struct tensor_shape leaves[MAX_LEAVES];
    int leaf_count;
    struct tensor *(*loss)(struct device *device, struct tensor **leaves);
};

/* A loss with a different slope for each element, so that exchanged elements show. */
static const struct kernels_activation leaky = {KERNELS_LEAKY_RELU, 0.2f};

static struct tensor *apply_tanh(struct tensor *x)
{
    return op_activate(x, (struct kernels_activation){KERNELS_TANH, 0});
}

static struct tensor *to_loss(struct tensor *x)
{
    return op_bce_with_logits(x, 0.3f);
}

static struct tensor *conv(struct device *device, struct tensor **leaves)
{
    (void)device;
    return to_loss(op_conv2d(leaves[0], leaves[1], leaves[2], 2, 1));
}

static struct tensor *conv_transposed(struct device *device, struct tensor **leaves)
{
    (void)device;
    return to_loss(op_conv2d_transposed(leaves[0], leaves[1], leaves[2], 2, 1));
}

static struct tensor *conv_activated(struct device *device, struct tensor **leaves)
{
    (void)device;
    const struct kernels_activation tanh_of = {KERNELS_TANH, 0.0f};
    return to_loss(op_conv2d_activated(leaves[0], leaves[1], leaves[2], 2, 1, tanh_of));
}

static struct tensor *conv_transposed_activated(struct device *device, struct tensor **leaves)
{
    (void)device;
    const struct kernels_activation tanh_of = {KERNELS_TANH, 0.0f};
    return to_loss(op_conv2d_transposed_activated(leaves[0], leaves[1], leaves[2], 2, 1, tanh_of));
}

static struct tensor *linear_of_reshaped(struct device *device, struct tensor **leaves)
{
    (void)device;
    return to_loss(op_linear(op_reshape(leaves[0], shape_2d(2, 6)), leaves[1], leaves[2]));
}

static struct tensor *batch_norm(struct device *device, struct tensor **leaves)
{
    struct tensor *mean = tensor_new_on_tape(device, shape_1d(3)),
                  *var = tensor_new_on_tape(device, shape_1d(3));
    tensor_fill(mean, 0.0f);
    tensor_fill(var, 1.0f);
    return to_loss(op_batch_norm(leaves[0], leaves[1], leaves[2], mean, var, true));
}

static struct tensor *activations(struct device *device, struct tensor **leaves)
{
    (void)device;
    struct tensor *x = apply_tanh(leaves[0]);
    return to_loss(op_activate(op_add(x, leaves[1]), leaky));
}

static struct tensor *in_place_on_clone(struct device *device, struct tensor **leaves)
{
    (void)device;
    struct tensor *x = apply_tanh(leaves[0]);
    return to_loss(op_add(x, op_leaky_relu_in_place(op_clone(x), 0.2f)));
}

static struct tensor *in_place_unsaved(struct device *device, struct tensor **leaves)
{
    (void)device;
    /* Convolution does not save its output, so this overwrites nothing that is needed. */
    return to_loss(op_leaky_relu_in_place(op_conv2d(leaves[0], leaves[1], NULL, 1, 1), 0.2f));
}

static struct tensor *leaf_used_twice(struct device *device, struct tensor **leaves)
{
    (void)device;
    return op_add(to_loss(op_linear(leaves[0], leaves[1], NULL)),
                  to_loss(apply_tanh(op_linear(leaves[0], leaves[1], NULL))));
}

static struct tensor *cross_entropy(struct device *device, struct tensor **leaves)
{
    static int32_t
        *labels; /* device memory: 3 labels and the count of right ones, for the whole program */
    if (!labels) {
        int32_t values[3] = {1, 0, 3};
        assert_int_equal(cudaMalloc((void **)&labels, 4 * sizeof *labels), cudaSuccess);
        assert_int_equal(
            cudaMemcpyAsync(labels, values, sizeof values, cudaMemcpyHostToDevice, device->stream),
            cudaSuccess);
        device_wait_for_compute(device);
    }
    return op_cross_entropy(leaves[0], labels, labels + 3);
}

#define SHAPE4(a, b, c, d) \
    {                      \
        4,                 \
        {                  \
            a, b, c, d     \
        }                  \
    }
#define SHAPE2(a, b) \
    {                \
        2,           \
        {            \
            a, b     \
        }            \
    }
#define SHAPE1(a) \
    {             \
        1,        \
        {         \
            a     \
        }         \
    }

static const struct graph graphs[] = {
    {"conv2d", {SHAPE4(2, 2, 6, 6), SHAPE4(3, 2, 4, 4), SHAPE1(3)}, 3, conv},
    {"conv2d_transposed", {SHAPE4(2, 3, 3, 3), SHAPE4(3, 2, 4, 4), SHAPE1(2)}, 3, conv_transposed},
    {"conv2d with tanh", {SHAPE4(2, 2, 6, 6), SHAPE4(3, 2, 4, 4), SHAPE1(3)}, 3, conv_activated},
    {"conv2d_transposed with tanh",
     {SHAPE4(2, 3, 3, 3), SHAPE4(3, 2, 4, 4), SHAPE1(2)},
     3,
     conv_transposed_activated},
    {"linear of reshape", {SHAPE4(2, 3, 2, 1), SHAPE2(4, 6), SHAPE1(4)}, 3, linear_of_reshaped},
    {"batch_norm", {SHAPE4(3, 3, 2, 2), SHAPE1(3), SHAPE1(3)}, 3, batch_norm},
    {"tanh, add, leaky_relu, sigmoid", {SHAPE1(12), SHAPE1(12)}, 2, activations},
    {"leaky_relu_in_place of clone", {SHAPE1(12)}, 1, in_place_on_clone},
    {"leaky_relu_in_place of conv2d",
     {SHAPE4(1, 1, 4, 4), SHAPE4(2, 1, 3, 3)},
     2,
     in_place_unsaved},
    {"a leaf used twice", {SHAPE2(3, 4), SHAPE2(2, 4)}, 2, leaf_used_twice},
    {"cross_entropy", {SHAPE2(3, 4)}, 1, cross_entropy},
};

static double value_of(struct device *device, const struct graph *graph, struct tensor **leaves)
{
    float loss;
    tensor_download(graph->loss(device, leaves), &loss);
    device_end_batch(device);
    return loss;
}

/* (f(x + h) - f(x - h)) / 2h with the losses in float: h balances rounding against curvature. */
static void compare_leaf(struct device *device, const struct graph *graph, struct tensor **leaves,
                         int which)
{
    const double h = 1e-2;
    struct tensor *leaf = leaves[which];
    size_t count = tensor_count(leaf);
    float *values = malloc(count * sizeof *values), *gradient = malloc(count * sizeof *gradient);
    assert_true(values && gradient);
    tensor_download(leaf, values);
    tensor_download(leaf->gradient, gradient);
    for (size_t i = 0; i < count; i++) {
        float original = values[i];
        values[i] = (float)(original + h);
        tensor_upload(leaf, values);
        double above = value_of(device, graph, leaves);
        values[i] = (float)(original - h);
        tensor_upload(leaf, values);
        double below = value_of(device, graph, leaves);
        values[i] = original;
        double expected = (above - below) / (2 * h);
        if (fabs(expected - gradient[i]) > 2e-4 + 2e-2 * fabs(expected))
            fail_msg("%s: leaf %d element %zu: gradient %g, finite difference %g", graph->name,
                     which, i, gradient[i], expected);
    }
    tensor_upload(leaf, values);
    free(values);
    free(gradient);
}

static void gradients_match_finite_differences(void **state)
{
    struct device *device = *state;
    for (size_t g = 0; g < sizeof graphs / sizeof graphs[0]; g++) {
        const struct graph *graph = &graphs[g];
        struct tensor *leaves[MAX_LEAVES] = {NULL};
        struct error err = {0};
        for (int i = 0; i < graph->leaf_count; i++)
            leaves[i] = new_leaf(device, graph->leaves[i], (unsigned)i + 3);
        assert_int_equal(autograd_backward(graph->loss(device, leaves), &err), 0);
        device_end_batch(device);
        for (int i = 0; i < graph->leaf_count; i++)
            compare_leaf(device, graph, leaves, i);
        for (int i = 0; i < graph->leaf_count; i++)
            free_leaf(leaves[i]);
    }
}

static void gradients_accumulate(void **state)
{
    struct device *device = *state;
    struct tensor *leaf = new_leaf(device, shape_1d(4), 1);
    struct error err = {0};
    float once[4], twice[4];
    assert_int_equal(autograd_backward(to_loss(apply_tanh(leaf)), &err), 0);
    tensor_download(leaf->gradient, once);
    assert_int_equal(autograd_backward(to_loss(apply_tanh(leaf)), &err), 0);
    tensor_download(leaf->gradient, twice);
    for (int i = 0; i < 4; i++)
        assert_float_equal(twice[i], 2 * once[i], 1e-6f);
    free_leaf(leaf);
}

static void detach_and_freezing_stop_gradients(void **state)
{
    struct device *device = *state;
    struct tensor *x = new_leaf(device, shape_2d(2, 3), 1),
                  *w = new_leaf(device, shape_2d(2, 3), 2);
    struct error err = {0};
    float gradient[6];
    w->requires_gradient = false;
    assert_int_equal(autograd_backward(to_loss(op_linear(x, w, NULL)), &err), 0);
    tensor_download(w->gradient, gradient);
    for (int i = 0; i < 6; i++)
        assert_float_equal(gradient[i], 0.0f, 0.0f);
    tensor_download(x->gradient, gradient);
    assert_true(fabsf(gradient[0]) > 0.0f);

    assert_null(apply_tanh(op_detach(apply_tanh(x)))->creator);
    assert_int_equal(autograd_backward(to_loss(op_detach(apply_tanh(x))), &err), -1);
    free_leaf(x);
    free_leaf(w);
}

struct calls {
    int count, last_index;
};

static void count_call(void *owner, int index)
{
    struct calls *calls = owner;
    calls->count++;
    calls->last_index = index;
}

static void a_hook_is_called_once_after_the_last_use(void **state)
{
    struct device *device = *state;
    struct tensor *x = new_leaf(device, shape_2d(3, 4), 1),
                  *w = new_leaf(device, shape_2d(2, 4), 2);
    struct calls calls = {0};
    struct error err = {0};
    w->hook = (struct gradient_hook){count_call, &calls, 7};
    assert_int_equal(autograd_backward(leaf_used_twice(device, (struct tensor *[]){x, w}), &err),
                     0);
    assert_int_equal(calls.count, 1);
    assert_int_equal(calls.last_index, 7);
    free_leaf(x);
    free_leaf(w);
}

/* --- versions --- */

/* Tanh saves its output, which is then overwritten. */
static struct tensor *overwritten(struct tensor *leaf)
{
    return to_loss(op_leaky_relu_in_place(apply_tanh(leaf), 0.2f));
}

static void overwriting_a_saved_tensor_is_an_error(void **state)
{
    struct device *device = *state;
    struct tensor *leaf = new_leaf(device, shape_1d(6), 1);
    struct error err = {0};
    assert_int_equal(autograd_backward(overwritten(leaf), &err), -1);
    assert_non_null(strstr(err.text, "modified by an in-place operation"));
    assert_non_null(strstr(
        err.text, "output of tanh (6 floats), saved by tanh, is at version 1; expected version 0"));
    free_leaf(leaf);
}

static void without_the_check_the_gradient_is_wrong(void **state)
{
    struct device *device = *state;
    struct tensor *leaf = new_leaf(device, shape_1d(60), 1),
                  *same = new_leaf(device, shape_1d(60), 1);
    struct error err = {0};
    float wrong[60], right[60], difference = 0;
    device->check_versions = false;
    assert_int_equal(autograd_backward(overwritten(leaf), &err), 0);
    device->check_versions = true;
    assert_int_equal(autograd_backward(to_loss(op_activate(apply_tanh(same), leaky)), &err), 0);
    tensor_download(leaf->gradient, wrong);
    tensor_download(same->gradient, right);
    for (int i = 0; i < 60; i++)
        difference += fabsf(wrong[i] - right[i]);
    assert_true(difference > 1e-3f);
    free_leaf(leaf);
    free_leaf(same);
}

static void views_share_their_version(void **state)
{
    struct device *device = *state;
    struct tensor *base = tensor_new(device, shape_1d(8)),
                  *view = tensor_view(base, 2, shape_2d(2, 3));
    uint32_t before = base->storage->version;
    tensor_fill(view, 1.0f);
    assert_int_equal(base->storage->version, before + 1);
    tensor_free(base);
    float values[6];
    tensor_download(view, values); /* the storage lives as long as its last tensor */
    assert_float_equal(values[5], 1.0f, 0.0f);
    tensor_free(view);
}

static void a_second_backward_is_an_error(void **state)
{
    struct device *device = *state;
    struct tensor *leaf = new_leaf(device, shape_1d(6), 1), *loss = to_loss(apply_tanh(leaf));
    struct error err = {0};
    assert_int_equal(autograd_backward(loss, &err), 0);
    assert_int_equal(autograd_backward(loss, &err), -1);
    assert_non_null(strstr(err.text, "a second time"));
    free_leaf(leaf);
}

/* Leaky ReLU has a corner, which finite differences meet: here the parts that it was made of are
 * the measure. */
static void a_fused_activation_is_the_one_after_it(void **state)
{
    struct device *device = *state;
    struct error err = {0};
    float one[64], other[64];
    for (int transposed = 0; transposed < 2; transposed++) {
        struct tensor *x = new_leaf(device, shape_4d(2, 2, 4, 4), 1),
                      *bias = new_leaf(device, shape_1d(2), 3);
        struct tensor *weight = new_leaf(device, shape_4d(2, 2, 3, 3), 2),
                      *leaves[] = {x, weight, bias};
        struct tensor *fused = transposed
                                   ? op_conv2d_transposed_activated(x, weight, bias, 1, 1, leaky)
                                   : op_conv2d_activated(x, weight, bias, 1, 1, leaky);
        struct tensor *parts = op_activate(transposed ? op_conv2d_transposed(x, weight, bias, 1, 1)
                                                      : op_conv2d(x, weight, bias, 1, 1),
                                           leaky);
        assert_int_equal(tensor_count(fused), 64);
        tensor_download(fused, one);
        tensor_download(parts, other);
        assert_memory_equal(one, other, sizeof one);
        float first[3][64];
        assert_int_equal(autograd_backward(to_loss(fused), &err), 0);
        for (int i = 0; i < 3; i++) {
            tensor_download(leaves[i]->gradient, first[i]);
            tensor_fill(leaves[i]->gradient, 0.0f);
        }
        assert_int_equal(autograd_backward(to_loss(parts), &err), 0);
        for (int i = 0; i < 3; i++) {
            tensor_download(leaves[i]->gradient, other);
            for (size_t k = 0; k < tensor_count(leaves[i]); k++)
                assert_float_equal(first[i][k], other[k], 1e-6f);
            free_leaf(leaves[i]);
        }
        device_end_batch(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gradients_match_finite_differences, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(gradients_accumulate, open_device, close_device),
        cmocka_unit_test_setup_teardown(detach_and_freezing_stop_gradients, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(a_hook_is_called_once_after_the_last_use, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(overwriting_a_saved_tensor_is_an_error, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(without_the_check_the_gradient_is_wrong, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(views_share_their_version, open_device, close_device),
        cmocka_unit_test_setup_teardown(a_second_backward_is_an_error, open_device, close_device),
        cmocka_unit_test_setup_teardown(a_fused_activation_is_the_one_after_it, open_device,
                                        close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
