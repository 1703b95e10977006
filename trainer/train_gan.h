/* train_gan.h: what all modes that train the GAN share. */
#ifndef DDPTRAIN_TRAIN_GAN_H
#define DDPTRAIN_TRAIN_GAN_H

#include "trainer/job.h"
#include "trainer/models/dcgan.h"

#define GAN_RATE 2e-3f
#define GAN_LOSSES                   \
    {                                \
        "discriminator", "generator" \
    }

/* What the discriminator's loss holds images for: op_bce_with_logits(dcgan_judge(...), GAN_REAL).
 */
#define GAN_REAL 1.0f
#define GAN_FAKE 0.0f

/* The models that the options describe, on any device, and their optimizers. */
void job_open_generator(const struct training_job *job, struct dcgan_generator *generator,
                        struct device *device);
void job_open_discriminator(const struct training_job *job,
                            struct dcgan_discriminator *discriminator, struct device *device);
struct adam_settings job_gan_adam(const struct training_job *job);

#endif
