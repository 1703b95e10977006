/* activation.c: leaky ReLU (also in place) and tanh. Tanh saves its output, leaky ReLU its input;
 * in place the input is gone, but its sign can be read from the output as well. Mixed
 * precision rounds values. */
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/operations.h"

static void leaky_relu_backward(struct node *node, const struct tensor *g_y,
                                struct tensor **g_inputs)
{
    struct device *device = tensor_device(g_y);
    g_inputs[0] = tensor_new_on_tape(device, g_y->shape);
    CHECK_CUDA(kernels_leaky_relu_backward(tensor_count(g_y), node->leaky_relu.slope,
                                           node_saved_data(node, 0), tensor_data(g_y),
                                           tensor_data(g_inputs[0]), device->stream));
}

static struct tensor *apply_leaky_relu(struct tensor *x, float slope)
{
    static const struct tensor_operation operation = {"leaky_relu", leaky_relu_backward};
    struct tensor *y = tensor_new_on_tape(tensor_device(x), x->shape);
    CHECK_CUDA(kernels_leaky_relu_forward(tensor_count(x), slope, tensor_data(x), tensor_data(y),
                                          tensor_device(x)->stream));
    struct node *node = node_record(&operation, y, &x, 1);
    if (node) {
        node->leaky_relu.slope = slope;
        node_save(node, 0, x);
    }
    return y;
}

struct tensor *op_leaky_relu_in_place(struct tensor *x, float slope)
{
    static const struct tensor_operation operation = {"leaky_relu_in_place", leaky_relu_backward};
    if (x->requires_gradient)
        fatal("leaky_relu_in_place: %s is a leaf that requires a gradient",
              x->name ? x->name : "the input");
    CHECK_CUDA(kernels_leaky_relu_forward(tensor_count(x), slope, tensor_data(x), tensor_data(x),
                                          tensor_device(x)->stream));
    tensor_wrote_in_place(x);
    /* From here on x is the new node's output; nodes that used x before keep their edges to the
     * old creator. */
    struct node *node = node_record(&operation, x, &x, 1);
    if (node) {
        node->leaky_relu.slope = slope;
        node_save(node, 0, x);
    }
    return x;
}

static void tanh_backward(struct node *node, const struct tensor *g_y, struct tensor **g_inputs)
{
    struct device *device = tensor_device(g_y);
    g_inputs[0] = tensor_new_on_tape(device, g_y->shape);
    CHECK_CUDA(kernels_tanh_backward(tensor_count(g_y), node_saved_data(node, 0), tensor_data(g_y),
                                     tensor_data(g_inputs[0]), device->stream));
}

static struct tensor *apply_tanh(struct tensor *x)
{
    static const struct tensor_operation operation = {"tanh", tanh_backward};
    struct tensor *y = tensor_new_on_tape(tensor_device(x), x->shape);
    CHECK_CUDA(kernels_tanh_forward(tensor_count(x), tensor_data(x), tensor_data(y),
                                    tensor_device(x)->stream));
    struct node *node = node_record(&operation, y, &x, 1);
    if (node)
        node_save(node, 0, y);
    return y;
}

struct tensor *op_activate(struct tensor *x, struct kernels_activation activation)
{
    if (activation.kind == KERNELS_LEAKY_RELU)
        return apply_leaky_relu(x, activation.slope);
    return activation.kind == KERNELS_TANH ? apply_tanh(x) : x;
}

/* --- rounding --- */

static struct tensor *rounded(const struct tensor *x)
{
    struct device *device = tensor_device(x);
    struct tensor *y = tensor_new_on_tape(device, x->shape);
    size_t count = tensor_count(x);
    if (device->precision == PRECISION_FP16)
        CHECK_CUDA(kernels_round_to_f16(count, tensor_data(x), tensor_data(y), device->overflow,
                                        device->stream));
    else
        CHECK_CUDA(kernels_round_to_bf16(count, tensor_data(x), tensor_data(y), device->overflow,
                                         device->stream));
    return y;
}

static void round_backward(struct node *node, const struct tensor *g_y, struct tensor **g_inputs)
{
    (void)node;
    g_inputs[0] = rounded(g_y);
}

struct tensor *op_round(struct tensor *x)
{
    static const struct tensor_operation operation = {"round", round_backward};
    if (tensor_device(x)->precision == PRECISION_FP32)
        return x;
    struct tensor *y = rounded(x);
    node_record(&operation, y, &x, 1);
    return y;
}
