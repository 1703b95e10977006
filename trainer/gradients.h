/* gradients.h: a module's gradients side by side in one tensor, for training without a reducer: one
 * fill sets them to zero, one collective reduces them all. */
#ifndef DDPTRAIN_GRADIENTS_H
#define DDPTRAIN_GRADIENTS_H

#include "trainer/module.h"

struct gradients {
    struct module *module;
    struct tensor *all; /* the parameters' gradients are views into it */
};

/* Gives each parameter a gradient, which is zero. The module must outlive the gradients. */
void gradients_open(struct gradients *gradients, struct module *module);
void gradients_close(struct gradients *gradients);
void gradients_zero(struct gradients *gradients);
void gradients_scale(struct gradients *gradients, float factor);

#endif
