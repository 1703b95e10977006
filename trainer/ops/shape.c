/* shape.c: operations that copy values or change their shape: add, clone, reshape, detach.
 */
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/operations.h"

static struct tensor *copy_on_tape(const struct tensor *x)
{
    struct device *device = tensor_device(x);
    struct tensor *copy = tensor_new_on_tape(device, x->shape);
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(copy), tensor_data(x), tensor_count(x) * sizeof(float),
                               cudaMemcpyDeviceToDevice, device->stream));
    return copy;
}

static struct tensor *view_on_tape(const struct tensor *x, struct tensor_shape shape)
{
    struct tensor *view = tensor_view(x, 0, shape);
    device_tape_tensor(tensor_device(x), view);
    return view;
}

static void add_backward(struct node *node, const struct tensor *g_y, struct tensor **g_inputs)
{
    for (int i = 0; i < 2; i++)
        if (node_wants(node, i))
            g_inputs[i] = view_on_tape(g_y, g_y->shape);
}

struct tensor *op_add(struct tensor *a, struct tensor *b)
{
    static const struct tensor_operation operation = {"add", add_backward};
    if (tensor_count(a) != tensor_count(b))
        fatal("add: %zu and %zu elements", tensor_count(a), tensor_count(b));
    struct tensor *sum = copy_on_tape(a);
    CHECK_CUDA(
        kernels_add(tensor_count(b), tensor_data(b), tensor_data(sum), tensor_device(a)->stream));
    node_record(&operation, sum, (struct tensor *[]){a, b}, 2);
    return sum;
}

static void clone_backward(struct node *node, const struct tensor *g_y, struct tensor **g_inputs)
{
    (void)node;
    g_inputs[0] = view_on_tape(g_y, g_y->shape);
}

struct tensor *op_clone(struct tensor *x)
{
    static const struct tensor_operation operation = {"clone", clone_backward};
    struct tensor *copy = copy_on_tape(x);
    node_record(&operation, copy, &x, 1);
    return copy;
}

static void reshape_backward(struct node *node, const struct tensor *g_y, struct tensor **g_inputs)
{
    /* x itself is not needed, only its shape: the slot holds no storage, so no version is checked.
     */
    g_inputs[0] = view_on_tape(g_y, node->saved[0].shape);
}

struct tensor *op_reshape(struct tensor *x, struct tensor_shape shape)
{
    static const struct tensor_operation operation = {"reshape", reshape_backward};
    if (shape_count(&shape) != tensor_count(x))
        fatal("reshape of %zu elements to %zu", tensor_count(x), shape_count(&shape));
    struct tensor *view = view_on_tape(x, shape);
    struct node *node = node_record(&operation, view, &x, 1);
    if (node)
        node->saved[0].shape = x->shape;
    return view;
}

struct tensor *op_detach(struct tensor *x)
{
    return view_on_tape(x, x->shape);
}
