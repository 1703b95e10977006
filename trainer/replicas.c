/* replicas.c: marks a model's parameters as buffers that must be equal on all ranks. */
#include "trainer/replicas.h"

#include "interpose/ddpcheck.h"

void replicas_announce(const struct distributed *ranks)
{
    const struct module *module = ranks->module;
    for (int i = 0; i < module->parameter_count; i++) {
        const struct tensor *w = module->parameters[i];
        ddpcheck_hash(w->name, tensor_data(w), tensor_count(w) * sizeof(float),
                      ranks->communicator->handle, module->device->stream);
    }
}
