/* loss.c: the loss functions, forward and backward. */
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/operations.h"

/* The gradient that arrives at a loss is the loss scale (1 without one): autograd_backward() starts
 * there, and the loss is its last operation. That lets the kernels take the scale as a number
 * instead of reading it from the device. */

static void bce_backward(struct node *node, const struct tensor *g_y, struct tensor **g_inputs)
{
    struct device *device = tensor_device(g_y);
    g_inputs[0] = tensor_new_on_tape(device, node->saved[0].shape);
    CHECK_CUDA(kernels_bce_with_logits_backward(tensor_count(g_inputs[0]), node_saved_data(node, 0),
                                                node->loss.target, device->loss_scale,
                                                tensor_data(g_inputs[0]), device->stream));
}

struct tensor *op_bce_with_logits(struct tensor *logits, float target)
{
    static const struct tensor_operation operation = {"bce_with_logits", bce_backward};
    struct tensor *loss = tensor_new_on_tape(tensor_device(logits), shape_1d(1));
    CHECK_CUDA(kernels_bce_with_logits_forward(tensor_count(logits), tensor_data(logits), target,
                                               tensor_data(loss), tensor_device(logits)->stream));
    struct node *node = node_record(&operation, loss, &logits, 1);
    if (node) {
        node->loss.target = target;
        node_save(node, 0, logits);
    }
    return loss;
}

static void cross_entropy_backward(struct node *node, const struct tensor *g_y,
                                   struct tensor **g_inputs)
{
    struct device *device = tensor_device(g_y);
    g_inputs[0] = tensor_new_on_tape(device, node->saved[0].shape);
    CHECK_CUDA(kernels_cross_entropy_backward(
        node->cross_entropy.n, node->cross_entropy.classes, node_saved_data(node, 0),
        node->cross_entropy.labels, device->loss_scale, tensor_data(g_inputs[0]), device->stream));
}

struct tensor *op_cross_entropy(struct tensor *logits, const int32_t *labels, int32_t *correct)
{
    static const struct tensor_operation operation = {"cross_entropy", cross_entropy_backward};
    int n = logits->shape.size[0], classes = logits->shape.size[1];
    struct tensor *loss = tensor_new_on_tape(tensor_device(logits), shape_1d(1));
    CHECK_CUDA(kernels_cross_entropy_forward(n, classes, tensor_data(logits), labels,
                                             tensor_data(loss), correct,
                                             tensor_device(logits)->stream));
    struct node *node = node_record(&operation, loss, &logits, 1);
    if (node) {
        node->cross_entropy.labels = labels;
        node->cross_entropy.n = n;
        node->cross_entropy.classes = classes;
        node_save(node, 0, logits);
    }
    return loss;
}
