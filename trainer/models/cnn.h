/* cnn.h: a small classifier: two convolutions that halve the image, each with batch norm (if wanted) and a leaky
 * ReLU, then, if wanted, a residual block that a forward pass may leave out (Huang et al. 2016, "Deep networks with
 * stochastic depth"), and a linear layer to one logit for each class. */
#ifndef DDPTRAIN_CNN_H
#define DDPTRAIN_CNN_H

#include "trainer/module.h"

enum { CNN_LEVELS = 2 };

struct cnn_shape {
    int image, channels, width, classes;
    bool batch_norm;
    bool block;
};

struct cnn {
    struct module module;
    struct cnn_shape shape;
    struct layer_conv2d conv[CNN_LEVELS];
    struct layer_batch_norm norm[CNN_LEVELS];
    struct layer_conv2d block;
    struct layer_linear classify;
};

/* shape->image must be a multiple of 4. */
void cnn_open(struct cnn *cnn, struct device *device, const struct cnn_shape *shape, uint64_t seed);
/* images[n][channels][image][image] to logits[n][classes]. with_block: through the block, if the model has one. */
struct tensor *cnn_classify(struct cnn *cnn, struct tensor *images, bool with_block);

#endif
