/* module.c: creates and initializes parameters, and applies layers. */
#include "trainer/module.h"

#include <stdio.h>
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/operations.h"
#include "trainer/random.h"

void module_open(struct module *module, const char *name, struct device *device, uint64_t seed)
{
    *module = (struct module){.name = name, .device = device, .seed = seed, .training = true};
}

static void named_free(struct tensor *tensor)
{
    free((char *)tensor->name);
    tensor_free(tensor);
}

void module_close(struct module *module)
{
    for (int i = 0; i < module->parameter_count; i++)
        named_free(module->parameters[i]);
    for (int i = 0; i < module->buffer_count; i++)
        named_free(module->buffers[i]);
    tensor_free(module->all_buffers);
}

static void give_name(struct tensor *tensor, const struct module *module, const char *layer,
                      const char *what)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s.%s", module->name, layer, what);
    tensor->name = duplicate(name);
}

struct tensor *module_parameter(struct module *module, const char *layer, const char *what,
                                struct tensor_shape shape, float mean, float deviation)
{
    size_t count = shape_count(&shape);
    if (module->elsewhere) {
        module->weights_drawn += count;
        return NULL;
    }
    if (module->parameter_count == MODULE_MAX_PARAMETERS)
        fatal("%s has more than %d parameters", module->name, MODULE_MAX_PARAMETERS);
    struct tensor *parameter = tensor_new(module->device, shape);
    float *values = allocate(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = mean + deviation *
                               random_normal(module->seed, RANDOM_WEIGHTS, module->weights_drawn++);
    tensor_upload(parameter, values);
    free(values);
    give_name(parameter, module, layer, what);
    parameter->requires_gradient = true;
    module->parameters[module->parameter_count++] = parameter;
    return parameter;
}

static struct tensor *module_buffer(struct module *module, const char *layer, const char *what,
                                    int count, float value)
{
    if (module->elsewhere)
        return NULL;
    if (!module->all_buffers) {
        module->all_buffers = tensor_new(module->device, shape_1d(MODULE_MAX_BUFFER_FLOATS));
        tensor_fill(module->all_buffers, 0.0f);
    }
    if (module->buffer_count == MODULE_MAX_BUFFERS ||
        module->buffer_floats + count > MODULE_MAX_BUFFER_FLOATS)
        fatal("%s has more than %d buffers or %d floats in them", module->name, MODULE_MAX_BUFFERS,
              MODULE_MAX_BUFFER_FLOATS);
    struct tensor *buffer =
        tensor_view(module->all_buffers, (size_t)module->buffer_floats, shape_1d(count));
    module->buffer_floats += count;
    tensor_fill(buffer, value);
    give_name(buffer, module, layer, what);
    module->buffers[module->buffer_count++] = buffer;
    return buffer;
}

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

void module_require_gradients(struct module *module, bool required)
{
    for (int i = 0; i < module->parameter_count; i++)
        module->parameters[i]->requires_gradient = required;
}

size_t module_parameter_floats(const struct module *module)
{
    size_t floats = 0;
    for (int i = 0; i < module->parameter_count; i++)
        floats += tensor_count(module->parameters[i]);
    return floats;
}
