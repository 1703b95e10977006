/* train_gan.c: training a DCGAN with two replicated models. An iteration trains the discriminator
 * on real and on generated images (two backward passes, one reduction), then the generator against
 * the discriminator (Goodfellow et al. 2014).
 *
 * Each model has a reducer and a communicator of its own: reductions of one can't be taken for the
 * other's. With
 * --shared-communicator they have one, which is right as long as all ranks reduce in the same
 * order. With
 * --simultaneous both backward passes come before both steps (Mescheder, Nowozin, Geiger 2017). */
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/evaluate.h"
#include "trainer/mistakes.h"
#include "trainer/models/dcgan.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_gan.h"

enum { CHANNELS = 1 };
static const float beta1 = 0.5f;

struct gan {
    struct dcgan_generator generator;
    struct dcgan_discriminator discriminator;
    struct communicator generator_communicator,
        discriminator_communicator; /* shared: the first is for both */
    bool shared;
    struct distributed generator_ranks, discriminator_ranks;
    struct optimizer generator_optimizer, discriminator_optimizer;
    struct noise noise;
};

static struct dcgan_shape shape_of(const struct training_job *job)
{
    const struct train_options *options = job->options;
    struct dcgan_shape shape = {.image = options->image,
                                .channels = CHANNELS,
                                .width = options->width,
                                .latent = options->latent,
                                .batch_norm = !options->no_batch_norm};
    if (options->inplace_clone)
        shape.shortcut = SHORTCUT_IN_PLACE_ON_CLONE;
    else if (fault_is(&job->fault, FAULT_INPLACE_ACTIVATION))
        shape.shortcut = SHORTCUT_IN_PLACE;
    else if (options->generator_shortcut)
        shape.shortcut = SHORTCUT_OUT_OF_PLACE;
    return shape;
}

void job_open_generator(const struct training_job *job, struct dcgan_generator *generator,
                        struct device *device)
{
    struct dcgan_shape shape = shape_of(job);
    dcgan_generator_open(generator, device, &shape, 2 * (uint64_t)job->options->seed);
}

void job_open_discriminator(const struct training_job *job,
                            struct dcgan_discriminator *discriminator, struct device *device)
{
    struct dcgan_shape shape = shape_of(job);
    dcgan_discriminator_open(discriminator, device, &shape, 2 * (uint64_t)job->options->seed + 1);
}

struct adam_settings job_gan_adam(const struct training_job *job)
{
    return job_adam(job, beta1);
}

/* Returns the discriminator's. */
static struct communicator *open_communicators(struct gan *gan, struct training_job *job)
{
    gan->shared = job->options->shared_communicator || fault_is(&job->fault, FAULT_SHARED_COMM);
    communicator_split(&job->control, &gan->generator_communicator,
                       gan->shared ? "models" : "generator");
    if (gan->shared)
        return &gan->generator_communicator;
    communicator_split(&job->control, &gan->discriminator_communicator, "discriminator");
    return &gan->discriminator_communicator;
}

static void *gan_open(struct training_job *job)
{
    struct gan *gan = allocate(1, sizeof *gan);
    struct distributed_settings settings = job_distributed(job);
    struct adam_settings adam = job_gan_adam(job);

    job_open_generator(job, &gan->generator, &job->device);
    job_open_discriminator(job, &gan->discriminator, &job->device);
    if (fault_strikes_rank(&job->fault, FAULT_MODEL_MISMATCH, job->environment.rank))
        mistake_reverse_parameters(&gan->generator.module);
    struct communicator *for_discriminator = open_communicators(gan, job);
    distributed_open(&gan->generator_ranks, &gan->generator.module, &gan->generator_communicator,
                     &settings);
    distributed_open(&gan->discriminator_ranks, &gan->discriminator.module, for_discriminator,
                     &settings);
    optimizer_open(&gan->generator_optimizer, &gan->generator.module, &adam);
    optimizer_open(&gan->discriminator_optimizer, &gan->discriminator.module, &adam);
    noise_open(&gan->noise, (uint64_t)job->options->seed, job->options->latent, job->loader.batch);
    return gan;
}

static void gan_close(void *self)
{
    struct gan *gan = self;
    noise_close(&gan->noise);
    optimizer_close(&gan->discriminator_optimizer);
    optimizer_close(&gan->generator_optimizer);
    distributed_close(&gan->discriminator_ranks);
    distributed_close(&gan->generator_ranks);
    if (!gan->shared)
        communicator_close(&gan->discriminator_communicator);
    communicator_close(&gan->generator_communicator);
    module_close(&gan->discriminator.module);
    module_close(&gan->generator.module);
    free(gan);
}

/* --- an iteration --- */

static struct tensor *gan_generate(struct gan *gan, struct training_job *job,
                                   const struct data_batch *batch)
{
    uint64_t ranks = (uint64_t)job->environment.size, rank = (uint64_t)job->environment.rank;
    range_begin("generator", "forward");
    distributed_begin_forward(&gan->generator_ranks);
    struct tensor *noise = noise_draw(&gan->noise, &job->device, RANDOM_NOISE, batch->n,
                                      batch->first_place * ranks + rank, ranks);
    struct tensor *images = dcgan_generate(&gan->generator, noise);
    distributed_end_forward(&gan->generator_ranks, &images, 1);
    range_end();
    return images;
}

/* The loss of taking `images` for what they are, through the discriminator's replicas. */
static struct tensor *gan_judge(struct gan *gan, struct tensor *images, float truth)
{
    range_begin("discriminator", "forward");
    distributed_begin_forward(&gan->discriminator_ranks);
    struct tensor *logits = dcgan_judge(&gan->discriminator, images);
    distributed_end_forward(&gan->discriminator_ranks, &logits, 1);
    struct tensor *loss = op_bce_with_logits(logits, truth);
    range_end();
    return loss;
}

/* Real images first, without reduction; then generated ones, whose backward reduces the gradients
 * of both. Returns the loss, or NULL if the batch was lost. */
static struct tensor *backward_discriminator(struct gan *gan, struct training_job *job,
                                             struct tensor *images, struct tensor *generated)
{
    struct distributed *ranks = &gan->discriminator_ranks;
    distributed_zero_gradients(ranks);
    distributed_set_no_sync(ranks, true);
    struct tensor *loss_real = gan_judge(gan, images, GAN_REAL);
    distributed_backward(ranks, loss_real);
    distributed_set_no_sync(ranks, false);
    struct tensor *loss_fake = gan_judge(gan, op_detach(generated), GAN_FAKE);
    job_stall_if(job, FAULT_SLOW_HOST);

    if (job_fault_strikes(job, FAULT_OOM_SKIP) && mistake_run_out_of_memory(job->iteration)) {
        if (!job->options->catch_up)
            return NULL;
        distributed_shadow_backward(ranks);
    } else {
        distributed_backward(ranks, loss_fake);
    }
    return op_add(loss_real, loss_fake);
}

/* The discriminator is only evaluated: its parameters are frozen and its replicas do not reduce. */
static struct tensor *backward_generator(struct gan *gan, struct tensor *generated)
{
    struct distributed *ranks = &gan->generator_ranks;
    distributed_zero_gradients(ranks);
    module_require_gradients(&gan->discriminator.module, false);
    struct tensor *loss = op_bce_with_logits(dcgan_judge(&gan->discriminator, generated), GAN_REAL);
    distributed_backward(ranks, loss);
    module_require_gradients(&gan->discriminator.module, true);
    return loss;
}

static void gan_step(struct training_job *job, struct distributed *ranks,
                     struct optimizer *optimizer)
{
    if (scaler_unscale(&job->scaler, &ranks->reducer)) {
        range_begin(ranks->module->name, "step");
        if (job->options->gradients.clip > 0)
            reducer_clip_gradients(&ranks->reducer, (float)job->options->gradients.clip);
        optimizer_step(optimizer);
        range_end();
    }
    replicas_announce(ranks);
}

/* Steps with the averages of the gradients that backward has computed. */
static void update_discriminator(struct gan *gan, struct training_job *job)
{
    struct distributed *ranks = &gan->discriminator_ranks;
    bool early = job_fault_strikes(job, FAULT_EARLY_STEP);
    if (job_fault_strikes(job, FAULT_INPLACE_BUCKET))
        reducer_clip_gradients(&ranks->reducer, 0.01f); /* too early: the AllReduce is in flight */
    if (early)
        gan_step(job, ranks,
                 &gan->discriminator_optimizer); /* too early: the gradients are not averaged yet */
    distributed_finish_reduction(ranks);
    if (!early)
        gan_step(job, ranks, &gan->discriminator_optimizer);
}

static void update_generator(struct gan *gan, struct training_job *job)
{
    distributed_finish_reduction(&gan->generator_ranks);
    if (job_fault_strikes(job, FAULT_AMP_SKIP))
        mistake_overflow_half(&job->device);
    gan_step(job, &gan->generator_ranks, &gan->generator_optimizer);
}

/* The generator learns from the discriminator that this batch has trained. */
static bool update_in_turn(struct gan *gan, struct training_job *job,
                           const struct data_batch *batch, struct tensor *generated,
                           struct tensor **losses)
{
    int updates = job->options->discriminator_updates;
    if (job_fault_strikes(job, FAULT_UNEVEN_UPDATES))
        updates++; /* "it lags behind here": the other ranks don't know */
    for (int i = 0; i < updates; i++) {
        losses[0] = backward_discriminator(gan, job, batch->images, generated);
        if (!losses[0])
            return false;
        update_discriminator(gan, job);
    }
    losses[1] = backward_generator(gan, generated);
    update_generator(gan, job);
    return true;
}

/* Neither backward pass needs the other's step, so that their order is free; but it must be the
 * same on all ranks. */
static bool update_at_once(struct gan *gan, struct training_job *job,
                           const struct data_batch *batch, struct tensor *generated,
                           struct tensor **losses)
{
    bool generator_first = job_fault_strikes(job, FAULT_SHARED_COMM) ||
                           job_fault_strikes(job, FAULT_COMM_ORDER);
    if (generator_first)
        losses[1] = backward_generator(gan, generated);
    losses[0] = backward_discriminator(gan, job, batch->images, generated);
    if (!losses[0])
        return false;
    if (!generator_first)
        losses[1] = backward_generator(gan, generated);
    update_discriminator(gan, job);
    update_generator(gan, job);
    return true;
}

static bool is_simultaneous(const struct training_job *job)
{
    return job->options->simultaneous || fault_is(&job->fault, FAULT_SHARED_COMM) ||
           fault_is(&job->fault, FAULT_COMM_ORDER);
}

static bool gan_iterate(void *self, struct training_job *job, const struct data_batch *batch,
                        struct tensor **losses)
{
    struct gan *gan = self;
    if (job_fault_strikes(job, FAULT_WRONG_DEVICE))
        mistake_move_first_weights(&gan->discriminator.module);
    gan->discriminator_ranks.reducer.fault = job_fault_now(job);
    struct tensor *generated = gan_generate(gan, job, batch);
    return is_simultaneous(job) ? update_at_once(gan, job, batch, generated, losses)
                                : update_in_turn(gan, job, batch, generated, losses);
}

static void shadow_discriminator(struct gan *gan)
{
    distributed_set_no_sync(&gan->discriminator_ranks, true);
    distributed_shadow_forward(&gan->discriminator_ranks);
    distributed_set_no_sync(&gan->discriminator_ranks, false);
    distributed_shadow_forward(&gan->discriminator_ranks);
    distributed_shadow_backward(&gan->discriminator_ranks);
}

/* The collectives of gan_iterate(), in its order. */
static void gan_shadow(void *self, struct training_job *job)
{
    struct gan *gan = self;
    bool at_once = is_simultaneous(job);
    distributed_shadow_forward(&gan->generator_ranks);
    for (int i = 0; i < job->options->discriminator_updates; i++) {
        shadow_discriminator(gan);
        if (!at_once)
            scaler_shadow(&job->scaler);
    }
    distributed_shadow_backward(&gan->generator_ranks);
    if (at_once)
        scaler_shadow(&job->scaler);
    scaler_shadow(&job->scaler);
}

/* --- state and results --- */

static void gan_take_state_of(void *self, int root)
{
    struct gan *gan = self;
    distributed_take_state_of(&gan->generator_ranks, root);
    distributed_take_state_of(&gan->discriminator_ranks, root);
}

static int gan_sections(void *self, struct checkpoint_section *sections)
{
    struct gan *gan = self;
    sections[0] = (struct checkpoint_section){&gan->generator.module, &gan->generator_optimizer};
    sections[1] =
        (struct checkpoint_section){&gan->discriminator.module, &gan->discriminator_optimizer};
    return 2;
}

static void gan_finish(void *self, struct training_job *job)
{
    struct gan *gan = self;
    evaluate_generator(job, &gan->generator);
}

const struct trainee trainee_gan = {
    .name = "gan",
    .mode = "ddp",
    .losses = GAN_LOSSES,
    .rate = GAN_RATE,
    .open = gan_open,
    .iterate = gan_iterate,
    .shadow = gan_shadow,
    .take_state_of = gan_take_state_of,
    .finish = gan_finish,
    .sections = gan_sections,
    .close = gan_close,
};
