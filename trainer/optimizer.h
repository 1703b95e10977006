/* optimizer.h: Adam (Kingma & Ba 2015) over a module's parameters and their gradients. */
#ifndef DDPTRAIN_OPTIMIZER_H
#define DDPTRAIN_OPTIMIZER_H

#include "trainer/module.h"

struct adam_settings {
    float rate, beta1, beta2, epsilon;
};

struct optimizer {
    struct module *module;
    struct adam_settings settings;
    int step;                                   /* steps done */
    struct tensor *mean[MODULE_MAX_PARAMETERS]; /* running mean of each gradient, m in the paper */
    struct tensor *square[MODULE_MAX_PARAMETERS]; /* and of its square, v */
};

/* The module must outlive the optimizer. */
void optimizer_open(struct optimizer *optimizer, struct module *module,
                    const struct adam_settings *settings);
void optimizer_close(struct optimizer *optimizer);
/* Changes the parameters, in place, on the compute stream: the gradients must be reduced before. */
void optimizer_step(struct optimizer *optimizer);

#endif
