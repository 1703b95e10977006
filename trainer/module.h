/* module.h: a model's parameters and buffers by name, and the layers that bring them.
 *
 * Parameters are what the optimizer changes and what gets gradients; buffers are state that travels
 * with the model but is not trained (batch norm's running statistics). A module's buffers lie side
 * by side in one tensor, so that one Broadcast keeps the ranks' buffers equal. */
#ifndef DDPTRAIN_MODULE_H
#define DDPTRAIN_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "trainer/tensor.h"

enum { MODULE_MAX_PARAMETERS = 64, MODULE_MAX_BUFFERS = 64, MODULE_MAX_BUFFER_FLOATS = 32768 };

struct module {
    const char *name; /* "generator" */
    struct device *device;
    uint64_t seed, weights_drawn; /* where the next initial weight comes from (random.h) */
    bool elsewhere; /* the layers made now are another rank's: their weights are passed over */
    bool training;  /* batch norm uses the batch, not the running statistics */
    struct tensor *parameters[MODULE_MAX_PARAMETERS]; /* in order of use by forward */
    int parameter_count;
    struct tensor *buffers[MODULE_MAX_BUFFERS]; /* views into all_buffers */
    int buffer_count;
    struct tensor *all_buffers; /* NULL: none */
    int buffer_floats;          /* used of it */
};

struct layer_conv2d {
    struct tensor *weight, *bias;
    int stride, pad;
};
struct layer_linear {
    struct tensor *weight, *bias;
};
struct layer_batch_norm {
    struct module *module;
    struct tensor *gamma, *beta, *running_mean, *running_var;
};

/* `name` must outlive the module; equal seeds give equal weights. */
void module_open(struct module *module, const char *name, struct device *device, uint64_t seed);
/* Frees the parameters and buffers. */
void module_close(struct module *module);

/* Adds a parameter with normally distributed values around `mean`. The module owns the result. */
struct tensor *module_parameter(struct module *module, const char *layer, const char *what,
                                struct tensor_shape shape, float mean, float deviation);

/* Adds a buffer with this value everywhere. The module owns the result. */
struct tensor *module_buffer(struct module *module, const char *layer, const char *what, int count,
                             float value);

/* Layers register their parameters with the module, which owns them. `deviation` is that of the
 * initial weights. */
struct layer_conv2d layer_conv2d_new(struct module *module, const char *layer, int c_in, int c_out,
                                     int kernel, int stride, int pad, bool bias, float deviation);
/* The same with weights [c_in][c_out][k][k]. */
struct layer_conv2d layer_conv2d_transposed_new(struct module *module, const char *layer, int c_in,
                                                int c_out, int kernel, int stride, int pad,
                                                bool bias, float deviation);
struct layer_linear layer_linear_new(struct module *module, const char *layer, int in, int out,
                                     float deviation);
struct layer_batch_norm layer_batch_norm_new(struct module *module, const char *layer, int channels,
                                             float deviation);

/* In the device's precision: input, weights and result are rounded to it, the gradients on their
 * way back as well. The parameters stay fp32 (the master weights), and so do their gradients and
 * what the optimizer keeps. */
struct tensor *layer_conv2d(const struct layer_conv2d *layer, struct tensor *x);
struct tensor *layer_conv2d_transposed(const struct layer_conv2d *layer, struct tensor *x);
/* With an activation, which the same kernel computes in fp32; otherwise it is applied to the
 * rounded result. */
struct tensor *layer_conv2d_activated(const struct layer_conv2d *layer, struct tensor *x,
                                      struct kernels_activation activation);
struct tensor *layer_conv2d_transposed_activated(const struct layer_conv2d *layer, struct tensor *x,
                                                 struct kernels_activation activation);
struct tensor *layer_linear(const struct layer_linear *layer, struct tensor *x);
struct tensor *layer_batch_norm(const struct layer_batch_norm *layer, struct tensor *x);

/* Switches gradients of all parameters on or off: a frozen model passes gradients on but collects
 * none. */
void module_require_gradients(struct module *module, bool required);

/* A module's gradients side by side in one tensor, for training without a reducer: one
 * fill sets them to zero, one collective reduces them all. */

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
