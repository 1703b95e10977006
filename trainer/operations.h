/* operations.h: what a model is made of. Each operation computes a new tensor on the tape of its
 * input's device and records how to go back (autograd.h). Everything is launched on the compute
 * stream; nothing waits. Shapes that do not fit are errors of the program and end it. */
#ifndef DDPTRAIN_OPERATIONS_H
#define DDPTRAIN_OPERATIONS_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "trainer/tensor.h"

/* x[n][c_in][h][w], weight[c_out][c_in][k][k]; bias[c_out] may be NULL. */
struct tensor *op_conv2d(struct tensor *x, struct tensor *weight, struct tensor *bias, int stride,
                         int pad);
/* x[n][c_in][h][w], weight[c_in][c_out][k][k]; the output has (h-1) stride - 2 pad + k rows. */
struct tensor *op_conv2d_transposed(struct tensor *x, struct tensor *weight, struct tensor *bias,
                                    int stride, int pad);
/* Both with an activation of the result, by the kernel that computes it; leaky ReLU needs a slope
 * above 0. */
struct tensor *op_conv2d_activated(struct tensor *x, struct tensor *weight, struct tensor *bias,
                                   int stride, int pad, struct kernels_activation activation);
struct tensor *op_conv2d_transposed_activated(struct tensor *x, struct tensor *weight,
                                              struct tensor *bias, int stride, int pad,
                                              struct kernels_activation activation);
/* x[n][in], weight[out][in]; bias[out] may be NULL. */
struct tensor *op_linear(struct tensor *x, struct tensor *weight, struct tensor *bias);

/* Training: normalises by the batch and moves the running statistics, in place. Otherwise uses
 * them, and no gradient flows back. */
struct tensor *op_batch_norm(struct tensor *x, struct tensor *gamma, struct tensor *beta,
                             struct tensor *running_mean, struct tensor *running_var,
                             bool training);

/* Leaky ReLU: overwrites x and returns it; x must not be a leaf that requires a gradient. */
struct tensor *op_leaky_relu_in_place(struct tensor *x, float slope);
/* Leaky ReLU, tanh, or x itself. */
struct tensor *op_activate(struct tensor *x, struct kernels_activation activation);

/* x rounded to the device's precision (device.h), and on the way back its gradient as well; x
 * itself in fp32. */
struct tensor *op_round(struct tensor *x);

struct tensor *op_add(struct tensor *a, struct tensor *b);
struct tensor *op_clone(struct tensor *x);
/* The same storage in another shape. */
struct tensor *op_reshape(struct tensor *x, struct tensor_shape shape);
/* The same storage, cut off from what computed it: no gradient flows back. */
struct tensor *op_detach(struct tensor *x);

/* One number: the mean over all logits of the binary cross entropy with a constant target. */
struct tensor *op_bce_with_logits(struct tensor *logits, float target);
/* One number: the mean over rows of the softmax cross entropy. `labels` (n of them, in device
 * memory) must live until backward; *correct (device memory) gets how many rows have their largest
 * logit at the label. */
struct tensor *op_cross_entropy(struct tensor *logits, const int32_t *labels, int32_t *correct);

#endif
