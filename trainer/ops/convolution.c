/* convolution.c: convolution, transposed convolution and the linear layer, all of them y = W x + b.
 */
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/operations.h"

/* Inputs of all three, and saved slots; a bias is never saved, y only where an activation is part
 * of it. */
enum { X, WEIGHT, BIAS, Y = BIAS };

static const struct kernels_activation as_it_is = {KERNELS_IDENTITY, 0.0f};

static float *data_or_null(const struct tensor *tensor)
{
    return tensor ? tensor_data(tensor) : NULL;
}

static void save_x_and_weight(struct node *node, const struct tensor *x,
                              const struct tensor *weight)
{
    node_save(node, X, x);
    node_save(node, WEIGHT, weight);
}

/* The kernels add to the gradients of weights, so these start as zeros. */
static void zero_weight_gradients(const struct node *node, struct device *device, int outputs,
                                  struct tensor **g_inputs)
{
    g_inputs[WEIGHT] = tensor_new_on_tape(device, node->saved[WEIGHT].shape);
    tensor_fill(g_inputs[WEIGHT], 0.0f);
    if (!node_wants(node, BIAS))
        return;
    g_inputs[BIAS] = tensor_new_on_tape(device, shape_1d(outputs));
    tensor_fill(g_inputs[BIAS], 0.0f);
}

/* The activation's derivative follows from its result: tanh' = 1 - y y, and leaky ReLU's result
 * has the sign of its argument. Returns the gradient of what the activation was applied to. */
static const struct tensor *undo_activation(const struct node *node, const struct tensor *g_y)
{
    struct device *device = tensor_device(g_y);
    if (node->activation.kind == KERNELS_IDENTITY)
        return g_y;
    struct tensor *g = tensor_new_on_tape(device, g_y->shape);
    const float *y = node_saved_data(node, Y);
    if (node->activation.kind == KERNELS_TANH)
        CHECK_CUDA(kernels_tanh_backward(tensor_count(g), y, tensor_data(g_y), tensor_data(g),
                                         device->stream));
    else
        CHECK_CUDA(kernels_leaky_relu_backward(tensor_count(g), node->activation.slope, y,
                                               tensor_data(g_y), tensor_data(g), device->stream));
    return g;
}

static struct tensor *record_convolution(const struct tensor_operation *operation,
                                         const struct conv2d *c,
                                         struct kernels_activation activation, struct tensor *y,
                                         struct tensor *const inputs[3])
{
    struct node *node = node_record(operation, y, inputs, 3);
    if (!node)
        return y;
    node->convolution = *c;
    node->activation = activation;
    save_x_and_weight(node, inputs[X], inputs[WEIGHT]);
    if (activation.kind != KERNELS_IDENTITY)
        node_save(node, Y, y);
    return y;
}

/* --- convolution --- */

static void conv2d_backward(struct node *node, const struct tensor *g_y, struct tensor **g_inputs)
{
    struct device *device = tensor_device(g_y);
    const struct conv2d *c = &node->convolution;
    g_y = undo_activation(node, g_y);
    if (node_wants(node, X)) {
        g_inputs[X] = tensor_new_on_tape(device, node->saved[X].shape);
        CHECK_CUDA(kernels_conv2d_backward_data(c, tensor_data(g_y), node_saved_data(node, WEIGHT),
                                                tensor_data(g_inputs[X]), device->stream));
    }
    if (node_wants(node, WEIGHT)) {
        zero_weight_gradients(node, device, c->c_out, g_inputs);
        CHECK_CUDA(kernels_conv2d_backward_weight(c, node_saved_data(node, X), tensor_data(g_y),
                                                  tensor_data(g_inputs[WEIGHT]),
                                                  data_or_null(g_inputs[BIAS]), device->stream));
    }
}

struct tensor *op_conv2d_activated(struct tensor *x, struct tensor *weight, struct tensor *bias,
                                   int stride, int pad, struct kernels_activation activation)
{
    static const struct tensor_operation operation = {"conv2d", conv2d_backward};
    const int *in = x->shape.size, *w = weight->shape.size;
    if (w[1] != in[1])
        fatal("conv2d: the weights are for %d channels, the input has %d", w[1], in[1]);
    struct conv2d c = conv2d_shape(in[0], in[1], in[2], in[3], w[0], w[2], stride, pad);
    struct tensor *y = tensor_new_on_tape(tensor_device(x), shape_4d(c.n, c.c_out, c.y_h, c.y_w));
    CHECK_CUDA(kernels_conv2d_forward_activated(&c, tensor_data(x), tensor_data(weight),
                                                data_or_null(bias), activation, tensor_data(y),
                                                tensor_device(x)->stream));
    return record_convolution(&operation, &c, activation, y, (struct tensor *[]){x, weight, bias});
}

struct tensor *op_conv2d(struct tensor *x, struct tensor *weight, struct tensor *bias, int stride,
                         int pad)
{
    return op_conv2d_activated(x, weight, bias, stride, pad, as_it_is);
}

/* --- transposed convolution --- */

static void conv2d_transposed_backward(struct node *node, const struct tensor *g_y,
                                       struct tensor **g_inputs)
{
    struct device *device = tensor_device(g_y);
    const struct conv2d *c = &node->convolution;
    g_y = undo_activation(node, g_y);
    if (node_wants(node, X)) {
        g_inputs[X] = tensor_new_on_tape(device, node->saved[X].shape);
        CHECK_CUDA(kernels_conv2d_transposed_backward_data(
            c, tensor_data(g_y), node_saved_data(node, WEIGHT), tensor_data(g_inputs[X]),
            device->stream));
    }
    if (node_wants(node, WEIGHT)) {
        zero_weight_gradients(node, device, c->c_in, g_inputs);
        CHECK_CUDA(kernels_conv2d_transposed_backward_weight(
            c, node_saved_data(node, X), tensor_data(g_y), tensor_data(g_inputs[WEIGHT]),
            data_or_null(g_inputs[BIAS]), device->stream));
    }
}

struct tensor *op_conv2d_transposed_activated(struct tensor *x, struct tensor *weight,
                                              struct tensor *bias, int stride, int pad,
                                              struct kernels_activation activation)
{
    static const struct tensor_operation operation = {"conv2d_transposed",
                                                      conv2d_transposed_backward};
    const int *in = x->shape.size, *w = weight->shape.size;
    if (w[0] != in[1])
        fatal("conv2d_transposed: the weights are for %d channels, the input has %d", w[0], in[1]);
    /* The struct describes the convolution that goes the other way: its input is our output. */
    struct conv2d c = conv2d_transposed_shape(in[0], in[1], in[2], in[3], w[1], w[2], stride, pad);
    struct tensor *y = tensor_new_on_tape(tensor_device(x), shape_4d(c.n, c.c_in, c.h, c.w));
    CHECK_CUDA(kernels_conv2d_transposed_forward_activated(
        &c, tensor_data(x), tensor_data(weight), data_or_null(bias), activation, tensor_data(y),
        tensor_device(x)->stream));
    return record_convolution(&operation, &c, activation, y, (struct tensor *[]){x, weight, bias});
}

struct tensor *op_conv2d_transposed(struct tensor *x, struct tensor *weight, struct tensor *bias,
                                    int stride, int pad)
{
    return op_conv2d_transposed_activated(x, weight, bias, stride, pad, as_it_is);
}

/* --- linear --- */

static void linear_backward(struct node *node, const struct tensor *g_y, struct tensor **g_inputs)
{
    struct device *device = tensor_device(g_y);
    int n = node->linear.n, in = node->linear.in, out = node->linear.out;
    if (node_wants(node, X)) {
        g_inputs[X] = tensor_new_on_tape(device, node->saved[X].shape);
        CHECK_CUDA(kernels_linear_backward_data(n, in, out, tensor_data(g_y),
                                                node_saved_data(node, WEIGHT),
                                                tensor_data(g_inputs[X]), device->stream));
    }
    if (node_wants(node, WEIGHT)) {
        zero_weight_gradients(node, device, out, g_inputs);
        CHECK_CUDA(kernels_linear_backward_weight(n, in, out, node_saved_data(node, X),
                                                  tensor_data(g_y), tensor_data(g_inputs[WEIGHT]),
                                                  data_or_null(g_inputs[BIAS]), device->stream));
    }
}

struct tensor *op_linear(struct tensor *x, struct tensor *weight, struct tensor *bias)
{
    static const struct tensor_operation operation = {"linear", linear_backward};
    int n = x->shape.size[0], in = x->shape.size[1], out = weight->shape.size[0];
    if (weight->shape.size[1] != in)
        fatal("linear: the weights are for %d features, the input has %d", weight->shape.size[1],
              in);
    struct tensor *y = tensor_new_on_tape(tensor_device(x), shape_2d(n, out));
    CHECK_CUDA(kernels_linear_forward(n, in, out, tensor_data(x), tensor_data(weight),
                                      data_or_null(bias), tensor_data(y),
                                      tensor_device(x)->stream));
    struct node *node = node_record(&operation, y, (struct tensor *[]){x, weight, bias}, 3);
    if (node) {
        node->linear.n = n;
        node->linear.in = in;
        node->linear.out = out;
        save_x_and_weight(node, x, weight);
    }
    return y;
}
