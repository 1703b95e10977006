/* cnn.h: a small classifier: two convolutions that halve the image, each with batch norm (if
 * wanted) and a leaky ReLU, then, if wanted, a residual block that a forward pass may leave out
 * (Huang et al. 2016, "Deep networks with stochastic depth"), and a linear layer to one logit for
 * each class. */
#ifndef DDPTRAIN_CNN_H
#define DDPTRAIN_CNN_H

#include "trainer/module.h"

enum { CNN_LEVELS = 2 };

/* A pipeline cuts the model after its first convolution: each half is a model of its own. */
enum cnn_part { CNN_WHOLE, CNN_FRONT, CNN_BACK };

struct cnn_shape {
    int image, channels, width, classes;
    bool batch_norm;
    bool block;
    enum cnn_part part;
};

struct cnn {
    struct module module;
    struct cnn_shape shape;
    struct layer_conv2d conv[CNN_LEVELS];
    struct layer_batch_norm norm[CNN_LEVELS];
    struct layer_conv2d block;
    struct layer_linear classify;
};

/* shape->image must be a multiple of 4. The weights of a half are those that it has in the whole.
 */
void cnn_open(struct cnn *cnn, struct device *device, const struct cnn_shape *shape, uint64_t seed);
/* images[n][channels][image][image] to logits[n][classes]; the front ends, and the back begins,
 * with the activations between them. with_block: through the block, if the model has one. */
struct tensor *cnn_classify(struct cnn *cnn, struct tensor *images, bool with_block);
/* The shape of those activations. */
struct tensor_shape cnn_cut(const struct cnn_shape *shape, int n);

#endif
