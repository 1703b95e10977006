/* cnn.c: the layers of the classifier. */
#include "trainer/models/cnn.h"

#include <math.h>
#include <stdio.h>

#include "trainer/operations.h"

enum { CUT = 1, KERNEL = 4, STRIDE = 2, PAD = 1, BLOCK_KERNEL = 3 };
static const struct kernels_activation leaky_relu = {KERNELS_LEAKY_RELU, 0.1f};

/* Keeps the variance of what flows through a layer (He et al. 2015). */
static float he_deviation(int fan_in)
{
    return sqrtf(2.0f / (float)fan_in);
}

static bool has_level(const struct cnn_shape *shape, int i)
{
    return shape->part == CNN_WHOLE || (shape->part == CNN_FRONT) == (i < CUT);
}

struct tensor_shape cnn_cut(const struct cnn_shape *shape, int n)
{
    int image = shape->image >> CUT;
    return shape_4d(n, shape->width << (CUT - 1), image, image);
}

void cnn_open(struct cnn *cnn, struct device *device, const struct cnn_shape *shape, uint64_t seed)
{
    struct module *module = &cnn->module;
    module_open(module, "classifier", device, seed);
    cnn->shape = *shape;
    int channels = shape->channels, image = shape->image;
    for (int i = 0; i < CNN_LEVELS; i++) {
        int wanted = shape->width << i;
        char name[32];
        module->elsewhere = !has_level(shape, i);
        snprintf(name, sizeof name, "conv%d", i);
        cnn->conv[i] = layer_conv2d_new(module, name, channels, wanted, KERNEL, STRIDE, PAD,
                                        !shape->batch_norm,
                                        he_deviation(channels * KERNEL * KERNEL));
        snprintf(name, sizeof name, "norm%d", i);
        if (shape->batch_norm)
            cnn->norm[i] = layer_batch_norm_new(module, name, wanted, 0.0f);
        channels = wanted;
        image /= STRIDE;
    }
    module->elsewhere = shape->part == CNN_FRONT;
    if (shape->block)
        cnn->block = layer_conv2d_new(module, "block", channels, channels, BLOCK_KERNEL, 1, PAD,
                                      true, he_deviation(channels * BLOCK_KERNEL * BLOCK_KERNEL));
    int features = channels * image * image;
    cnn->classify =
        layer_linear_new(module, "classify", features, shape->classes, he_deviation(features));
}

struct tensor *cnn_classify(struct cnn *cnn, struct tensor *images, bool with_block)
{
    struct tensor *x = images;
    for (int i = 0; i < CNN_LEVELS; i++) {
        if (!has_level(&cnn->shape, i))
            continue;
        if (cnn->shape.batch_norm)
            x = op_activate(layer_batch_norm(&cnn->norm[i], layer_conv2d(&cnn->conv[i], x)),
                            leaky_relu);
        else
            x = layer_conv2d_activated(&cnn->conv[i], x, leaky_relu);
    }
    if (cnn->shape.part == CNN_FRONT)
        return x;
    if (cnn->shape.block && with_block)
        x = op_add(x, layer_conv2d_activated(&cnn->block, x, leaky_relu));
    const int *size = x->shape.size;
    x = op_reshape(x, shape_2d(size[0], size[1] * size[2] * size[3]));
    return layer_linear(&cnn->classify, x);
}
