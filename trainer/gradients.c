/* gradients.c: one tensor that holds all gradients of a module. */
#include "trainer/gradients.h"

#include "kernels/kernels.h"
#include "trainer/check.h"

void gradients_open(struct gradients *gradients, struct module *module)
{
    size_t offset = 0;
    *gradients = (struct gradients){.module = module};
    gradients->all = tensor_new(module->device, shape_1d((int)module_parameter_floats(module)));
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
