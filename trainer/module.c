/* module.c: creates and initializes parameters, buffers and gradients. */
#include "trainer/module.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "trainer/check.h"
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

struct tensor *module_buffer(struct module *module, const char *layer, const char *what, int count,
                             float value)
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

void module_require_gradients(struct module *module, bool required)
{
    for (int i = 0; i < module->parameter_count; i++)
        module->parameters[i]->requires_gradient = required;
}

/* --- gradients --- */

static size_t parameter_floats(const struct module *module)
{
    size_t floats = 0;
    for (int i = 0; i < module->parameter_count; i++)
        floats += tensor_count(module->parameters[i]);
    return floats;
}

void gradients_open(struct gradients *gradients, struct module *module)
{
    size_t offset = 0;
    *gradients = (struct gradients){.module = module};
    gradients->all = tensor_new(module->device, shape_1d((int)parameter_floats(module)));
    for (int i = 0; i < module->parameter_count; i++) {
        struct tensor *parameter = module->parameters[i];
        parameter->gradient = tensor_view(gradients->all, offset, parameter->shape);
        offset += tensor_count(parameter);
    }
    gradients_zero(gradients);
}

void gradients_close(struct gradients *gradients)
{
    for (int i = 0; i < gradients->module->parameter_count; i++) {
        tensor_free(gradients->module->parameters[i]->gradient);
        gradients->module->parameters[i]->gradient = NULL;
    }
    tensor_free(gradients->all);
}

void gradients_zero(struct gradients *gradients)
{
    tensor_fill(gradients->all, 0.0f);
}

void gradients_scale(struct gradients *gradients, float factor)
{
    CHECK_CUDA(kernels_scale(tensor_count(gradients->all), factor, tensor_data(gradients->all),
                             gradients->module->device->stream));
    tensor_wrote_in_place(gradients->all);
}
