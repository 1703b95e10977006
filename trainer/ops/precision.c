/* precision.c: mixed precision: values are rounded to fp16 or bf16 and kept in fp32. A convolution
 * of rounded values that adds up in fp32 and rounds its result is what tensor cores compute; what
 * is not saved here is memory. */
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/operations.h"

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
