/* layers.c: registers the parameters of layers with a module, and applies layers. */
#include "trainer/module.h"

#include "trainer/operations.h"

struct layer_conv2d layer_conv2d_new(struct module *module, const char *layer, int c_in, int c_out,
                                     int kernel, int stride, int pad, bool bias, float deviation)
{
    struct layer_conv2d conv = {.stride = stride, .pad = pad};
    conv.weight = module_parameter(module, layer, "weight", shape_4d(c_out, c_in, kernel, kernel),
                                   0.0f, deviation);
    if (bias)
        conv.bias = module_parameter(module, layer, "bias", shape_1d(c_out), 0.0f, 0.0f);
    return conv;
}

struct layer_conv2d layer_conv2d_transposed_new(struct module *module, const char *layer, int c_in,
                                                int c_out, int kernel, int stride, int pad,
                                                bool bias, float deviation)
{
    struct layer_conv2d conv = {.stride = stride, .pad = pad};
    conv.weight = module_parameter(module, layer, "weight", shape_4d(c_in, c_out, kernel, kernel),
                                   0.0f, deviation);
    if (bias)
        conv.bias = module_parameter(module, layer, "bias", shape_1d(c_out), 0.0f, 0.0f);
    return conv;
}

struct layer_linear layer_linear_new(struct module *module, const char *layer, int in, int out,
                                     float deviation)
{
    return (struct layer_linear){
        .weight = module_parameter(module, layer, "weight", shape_2d(out, in), 0.0f, deviation),
        .bias = module_parameter(module, layer, "bias", shape_1d(out), 0.0f, 0.0f),
    };
}

struct layer_batch_norm layer_batch_norm_new(struct module *module, const char *layer, int channels,
                                             float deviation)
{
    return (struct layer_batch_norm){
        .module = module,
        .gamma = module_parameter(module, layer, "gamma", shape_1d(channels), 1.0f, deviation),
        .beta = module_parameter(module, layer, "beta", shape_1d(channels), 0.0f, 0.0f),
        .running_mean = module_buffer(module, layer, "running_mean", channels, 0.0f),
        .running_var = module_buffer(module, layer, "running_var", channels, 1.0f),
    };
}

static struct tensor *round_if_any(struct tensor *tensor)
{
    return tensor ? op_round(tensor) : NULL;
}

struct tensor *layer_conv2d(const struct layer_conv2d *layer, struct tensor *x)
{
    return op_round(op_conv2d(op_round(x), op_round(layer->weight), round_if_any(layer->bias),
                              layer->stride, layer->pad));
}

struct tensor *layer_conv2d_transposed(const struct layer_conv2d *layer, struct tensor *x)
{
    return op_round(op_conv2d_transposed(op_round(x), op_round(layer->weight),
                                         round_if_any(layer->bias), layer->stride, layer->pad));
}

struct tensor *layer_conv2d_activated(const struct layer_conv2d *layer, struct tensor *x,
                                      struct kernels_activation activation)
{
    if (tensor_device(x)->precision != PRECISION_FP32)
        return op_activate(layer_conv2d(layer, x), activation);
    return op_conv2d_activated(x, layer->weight, layer->bias, layer->stride, layer->pad,
                               activation);
}

struct tensor *layer_conv2d_transposed_activated(const struct layer_conv2d *layer, struct tensor *x,
                                                 struct kernels_activation activation)
{
    if (tensor_device(x)->precision != PRECISION_FP32)
        return op_activate(layer_conv2d_transposed(layer, x), activation);
    return op_conv2d_transposed_activated(x, layer->weight, layer->bias, layer->stride, layer->pad,
                                          activation);
}

struct tensor *layer_linear(const struct layer_linear *layer, struct tensor *x)
{
    return op_round(op_linear(op_round(x), op_round(layer->weight), op_round(layer->bias)));
}

struct tensor *layer_batch_norm(const struct layer_batch_norm *layer, struct tensor *x)
{
    return op_batch_norm(x, layer->gamma, layer->beta, layer->running_mean, layer->running_var,
                         layer->module->training);
}
