/* batch_norm.c: batch normalization, forward and backward. */
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/operations.h"

enum { X, GAMMA, BETA }; /* inputs; x and gamma are saved in slots of the same numbers */
enum { SAVED_MEAN = 2, SAVED_INV_STD = 3 };

static const float momentum = 0.1f, epsilon = 1e-5f; /* PyTorch's defaults */

static void batch_norm_backward(struct node *node, const struct tensor *g_y,
                                struct tensor **g_inputs)
{
    struct device *device = tensor_device(g_y);
    struct tensor_shape per_channel = shape_1d(node->batch_norm.channels);
    g_inputs[X] = tensor_new_on_tape(device, node->saved[X].shape);
    g_inputs[GAMMA] = tensor_new_on_tape(device, per_channel);
    g_inputs[BETA] = tensor_new_on_tape(device, per_channel);
    tensor_fill(g_inputs[GAMMA], 0.0f); /* the kernel adds to these two */
    tensor_fill(g_inputs[BETA], 0.0f);
    CHECK_CUDA(kernels_batch_norm_backward(
        node->batch_norm.n, node->batch_norm.channels, node->batch_norm.pixels,
        node_saved_data(node, X), node_saved_data(node, GAMMA), node_saved_data(node, SAVED_MEAN),
        node_saved_data(node, SAVED_INV_STD), tensor_data(g_y), tensor_data(g_inputs[X]),
        tensor_data(g_inputs[GAMMA]), tensor_data(g_inputs[BETA]), device->stream));
}

struct tensor *op_batch_norm(struct tensor *x, struct tensor *gamma, struct tensor *beta,
                             struct tensor *running_mean, struct tensor *running_var, bool training)
{
    static const struct tensor_operation operation = {"batch_norm", batch_norm_backward};
    struct device *device = tensor_device(x);
    int n = x->shape.size[0], channels = x->shape.size[1],
        pixels = x->shape.size[2] * x->shape.size[3];
    struct tensor *y = tensor_new_on_tape(device, x->shape);
    if (!training) {
        CHECK_CUDA(kernels_batch_norm_evaluate(n, channels, pixels, tensor_data(x),
                                               tensor_data(gamma), tensor_data(beta),
                                               tensor_data(running_mean), tensor_data(running_var),
                                               epsilon, tensor_data(y), device->stream));
        return y;
    }

    struct tensor *mean = tensor_new_on_tape(device, shape_1d(channels));
    struct tensor *inv_std = tensor_new_on_tape(device, shape_1d(channels));
    CHECK_CUDA(kernels_batch_norm_forward(
        n, channels, pixels, tensor_data(x), tensor_data(gamma), tensor_data(beta),
        tensor_data(running_mean), tensor_data(running_var), momentum, epsilon, tensor_data(mean),
        tensor_data(inv_std), tensor_data(y), device->stream));
    tensor_wrote_in_place(running_mean);
    tensor_wrote_in_place(running_var);
    struct node *node = node_record(&operation, y, (struct tensor *[]){x, gamma, beta}, 3);
    if (node) {
        node->batch_norm.n = n;
        node->batch_norm.channels = channels;
        node->batch_norm.pixels = pixels;
        node_save(node, X, x);
        node_save(node, GAMMA, gamma);
        node_save(node, SAVED_MEAN, mean);
        node_save(node, SAVED_INV_STD, inv_std);
    }
    return y;
}
