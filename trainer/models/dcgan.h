/* dcgan.h: a generator and a discriminator after Radford, Metz & Chintala 2016 (DCGAN).
 *
 * The generator turns a vector of noise into an image by transposed convolutions that double the
 * size each time, from 4x4; the discriminator halves it back to one number. Batch norm everywhere
 * but at the image. */
#ifndef DDPTRAIN_DCGAN_H
#define DDPTRAIN_DCGAN_H

#include "trainer/module.h"
#include "trainer/random.h"
#include "trainer/tensor.h"

enum { DCGAN_MAX_LEVELS = 6 }; /* 4x4 doubled 6 times: 256x256 */

/* How the generator's last hidden level computes the activation of its shortcut (scenario 1). */
enum dcgan_shortcut {
    SHORTCUT_NONE,              /* the plain DCGAN, without a shortcut */
    SHORTCUT_OUT_OF_PLACE,      /* correct */
    SHORTCUT_IN_PLACE,          /* destroys what batch norm saved for backward */
    SHORTCUT_IN_PLACE_ON_CLONE, /* correct */
};

struct dcgan_shape {
    int image;    /* height and width: 8, 16, .. 256 */
    int channels; /* of the image */
    int width;    /* channels of the widest layers next to the image */
    int latent;   /* length of the noise vector */
    bool batch_norm;
    enum dcgan_shortcut shortcut;
};

struct dcgan_level {
    struct layer_conv2d conv;
    struct layer_batch_norm norm;
    bool has_norm;
};

struct dcgan_generator {
    struct module module;
    struct dcgan_shape shape;
    struct dcgan_level levels[DCGAN_MAX_LEVELS + 1];
    int level_count;
};

struct dcgan_discriminator {
    struct module module;
    struct dcgan_shape shape;
    struct dcgan_level levels[DCGAN_MAX_LEVELS + 1];
    int level_count;
};

/* True if the image size is 4 times a power of two in range. */
bool dcgan_can_make(int image);

void dcgan_generator_open(struct dcgan_generator *generator, struct device *device,
                          const struct dcgan_shape *shape, uint64_t seed);
void dcgan_discriminator_open(struct dcgan_discriminator *discriminator, struct device *device,
                              const struct dcgan_shape *shape, uint64_t seed);

/* noise[n][latent][1][1] to images[n][channels][image][image] in -1..1. */
struct tensor *dcgan_generate(struct dcgan_generator *generator, struct tensor *noise);
/* Images to logits[n][1][1][1]: positive means real. */
struct tensor *dcgan_judge(struct dcgan_discriminator *discriminator, struct tensor *images);

/* The vectors that a generator makes images of: normally distributed numbers, by the place
 * of the image in the training (random.h), so that N ranks together draw what one rank would. */

struct noise {
    uint64_t seed;
    int latent;  /* length of a vector */
    int room;    /* vectors that fit in */
    float *host; /* pinned host memory */
};

/* For up to `room` vectors at once. */
void noise_open(struct noise *noise, uint64_t seed, int latent, int room);
void noise_close(struct noise *noise);

/* The vectors of n images, the first at place `first`, the others at steps of `stride`:
 * [n][latent][1][1] on the device's tape. The copy is enqueued on the compute stream, which must
 * have been waited for before the next call. */
struct tensor *noise_draw(struct noise *noise, struct device *device, enum random_stream stream,
                          int n, uint64_t first, uint64_t stride);

#endif
