/* dcgan.c: the layers of the generator and the discriminator, and the generator's noise. */
#include "trainer/models/dcgan.h"

#include <stdio.h>

#include "trainer/check.h"
#include "trainer/operations.h"

/* Constants of the paper: weights N(0, 0.02), slope 0.2, kernels of 4 with stride 2. */
static const float weight_deviation = 0.02f;
static const struct kernels_activation leaky_relu = {KERNELS_LEAKY_RELU, 0.2f},
                                       hyperbolic_tangent = {KERNELS_TANH, 0.0f};
enum { SMALLEST_IMAGE = 4, KERNEL = 4 };

bool dcgan_can_make(int image)
{
    for (int level = 1; level <= DCGAN_MAX_LEVELS; level++)
        if (image == SMALLEST_IMAGE << level)
            return true;
    return false;
}

/* How often 4x4 is doubled to get the image. */
static int doublings(const struct dcgan_shape *shape)
{
    int count = 0;
    while (SMALLEST_IMAGE << count < shape->image)
        count++;
    return count;
}

void dcgan_generator_open(struct dcgan_generator *generator, struct device *device,
                          const struct dcgan_shape *shape, uint64_t seed)
{
    struct module *module = &generator->module;
    module_open(module, "generator", device, seed);
    generator->shape = *shape;
    int levels = doublings(shape), channels = shape->latent;
    generator->level_count = levels + 1;
    for (int i = 0; i <= levels; i++) {
        struct dcgan_level *level = &generator->levels[i];
        bool first = i == 0, image = i == levels;
        int wanted = image ? shape->channels : shape->width << (levels - 1 - i);
        char name[32];
        level->has_norm = shape->batch_norm && !image;
        snprintf(name, sizeof name, "up%d", i);
        level->conv = layer_conv2d_transposed_new(module, name, channels, wanted, KERNEL,
                                                  first ? 1 : 2, !first, !level->has_norm,
                                                  weight_deviation);
        snprintf(name, sizeof name, "norm%d", i);
        if (level->has_norm)
            level->norm = layer_batch_norm_new(module, name, wanted, weight_deviation);
        channels = wanted;
    }
}

void dcgan_discriminator_open(struct dcgan_discriminator *discriminator, struct device *device,
                              const struct dcgan_shape *shape, uint64_t seed)
{
    struct module *module = &discriminator->module;
    module_open(module, "discriminator", device, seed);
    discriminator->shape = *shape;
    int levels = doublings(shape), channels = shape->channels;
    discriminator->level_count = levels + 1;
    for (int i = 0; i <= levels; i++) {
        struct dcgan_level *level = &discriminator->levels[i];
        bool verdict = i == levels;
        int wanted = verdict ? 1 : shape->width << i;
        char name[32];
        level->has_norm = shape->batch_norm && i > 0 && !verdict;
        snprintf(name, sizeof name, "down%d", i);
        level->conv = layer_conv2d_new(module, name, channels, wanted, KERNEL, verdict ? 1 : 2,
                                       !verdict, !level->has_norm, weight_deviation);
        snprintf(name, sizeof name, "norm%d", i);
        if (level->has_norm)
            level->norm = layer_batch_norm_new(module, name, wanted, weight_deviation);
        channels = wanted;
    }
}

/* The activation of the shortcut around batch norm, in the ways that scenario 1 compares. All have
 * the same value; in place it also overwrites `x`, which batch norm has saved. */
static struct tensor *shortcut_activation(struct tensor *x, enum dcgan_shortcut shortcut)
{
    switch (shortcut) {
    case SHORTCUT_IN_PLACE:
        return op_leaky_relu_in_place(x, leaky_relu.slope);
    case SHORTCUT_IN_PLACE_ON_CLONE:
        return op_leaky_relu_in_place(op_clone(x), leaky_relu.slope);
    default:
        return op_activate(x, leaky_relu);
    }
}

static struct tensor *generator_level(const struct dcgan_generator *generator, int i,
                                      struct tensor *x)
{
    const struct dcgan_level *level = &generator->levels[i];
    bool last_hidden = i == generator->level_count - 2;
    if (!level->has_norm)
        return layer_conv2d_transposed_activated(&level->conv, x, leaky_relu);
    x = layer_conv2d_transposed(&level->conv, x);
    struct tensor *y = layer_batch_norm(&level->norm, x);
    if (last_hidden && generator->shape.shortcut != SHORTCUT_NONE)
        y = op_add(y, shortcut_activation(x, generator->shape.shortcut));
    return op_activate(y, leaky_relu);
}

struct tensor *dcgan_generate(struct dcgan_generator *generator, struct tensor *noise)
{
    struct tensor *x = noise;
    int last = generator->level_count - 1;
    for (int i = 0; i < last; i++)
        x = generator_level(generator, i, x);
    return layer_conv2d_transposed_activated(&generator->levels[last].conv, x, hyperbolic_tangent);
}

struct tensor *dcgan_judge(struct dcgan_discriminator *discriminator, struct tensor *images)
{
    struct tensor *x = images;
    int last = discriminator->level_count - 1;
    for (int i = 0; i < last; i++) {
        const struct dcgan_level *level = &discriminator->levels[i];
        if (level->has_norm)
            x = op_activate(layer_batch_norm(&level->norm, layer_conv2d(&level->conv, x)),
                            leaky_relu);
        else
            x = layer_conv2d_activated(&level->conv, x, leaky_relu);
    }
    return layer_conv2d(&discriminator->levels[last].conv, x);
}

/* --- noise --- */

void noise_open(struct noise *noise, uint64_t seed, int latent, int room)
{
    *noise = (struct noise){.seed = seed, .latent = latent, .room = room};
    CHECK_CUDA(
        cudaMallocHost((void **)&noise->host, (size_t)room * (size_t)latent * sizeof *noise->host));
}

void noise_close(struct noise *noise)
{
    CHECK_CUDA(cudaFreeHost(noise->host));
}

struct tensor *noise_draw(struct noise *noise, struct device *device, enum random_stream stream,
                          int n, uint64_t first, uint64_t stride)
{
    int latent = noise->latent;
    if (n > noise->room)
        fatal("noise for %d images was asked for, with room for %d", n, noise->room);
    struct tensor *vectors = tensor_new_on_tape(device, shape_4d(n, latent, 1, 1));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < latent; k++)
            noise->host[i * latent + k] =
                random_normal(noise->seed, stream,
                              (first + (uint64_t)i * stride) * (uint64_t)latent + (uint64_t)k);
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(vectors), noise->host,
                               tensor_count(vectors) * sizeof(float), cudaMemcpyHostToDevice,
                               device->stream));
    return vectors;
}
