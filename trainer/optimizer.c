/* optimizer.c: one step of Adam. */
#include "trainer/optimizer.h"

#include "kernels/kernels.h"
#include "trainer/check.h"

void optimizer_open(struct optimizer *optimizer, struct module *module,
                    const struct adam_settings *settings)
{
    *optimizer = (struct optimizer){.module = module, .settings = *settings};
    for (int i = 0; i < module->parameter_count; i++) {
        optimizer->mean[i] = tensor_new(module->device, module->parameters[i]->shape);
        optimizer->square[i] = tensor_new(module->device, module->parameters[i]->shape);
        tensor_fill(optimizer->mean[i], 0.0f);
        tensor_fill(optimizer->square[i], 0.0f);
    }
}

void optimizer_close(struct optimizer *optimizer)
{
    for (int i = 0; i < optimizer->module->parameter_count; i++) {
        tensor_free(optimizer->mean[i]);
        tensor_free(optimizer->square[i]);
    }
}

void optimizer_step(struct optimizer *optimizer)
{
    const struct adam_settings *s = &optimizer->settings;
    struct module *module = optimizer->module;
    optimizer->step++;
    for (int i = 0; i < module->parameter_count; i++) {
        struct tensor *w = module->parameters[i];
        if (w->no_gradient)
            continue;
        CHECK_CUDA(kernels_adam_step(tensor_count(w), tensor_data(w), tensor_data(w->gradient),
                                     tensor_data(optimizer->mean[i]),
                                     tensor_data(optimizer->square[i]), s->rate, s->beta1, s->beta2,
                                     s->epsilon, optimizer->step, module->device->stream));
        tensor_wrote_in_place(w);
        tensor_wrote_in_place(optimizer->mean[i]);
        tensor_wrote_in_place(optimizer->square[i]);
    }
}
