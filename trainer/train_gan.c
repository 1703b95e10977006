/* Training a DCGAN with two replicated models. An iteration trains the discriminator on real and on generated images
 * (two backward passes, one reduction), then the generator against the discriminator (Goodfellow et al. 2014).
 *
 * Each model has a reducer and a communicator of its own: reductions of one can't be taken for the other's. With
 * --shared-communicator they have one, which is right as long as all ranks reduce in the same order. With
 * --simultaneous both backward passes come before both steps (Mescheder, Nowozin, Geiger 2017). */
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/job.h"
#include "trainer/mistakes.h"
#include "trainer/models/dcgan.h"
#include "trainer/operations.h"
#include "trainer/random.h"
#include "trainer/samples_png.h"
#include "trainer/replicas.h"
#include "trainer/trace_ranges.h"

enum { CHANNELS = 1, SAMPLE_COLUMNS = 8, SAMPLE_COUNT = 64 };
static const float real = 1.0f, fake = 0.0f, beta1 = 0.5f;

struct gan {
    struct dcgan_generator generator;
    struct dcgan_discriminator discriminator;
    struct communicator generator_communicator, discriminator_communicator;    /* shared: the first is for both */
    bool shared;
    struct distributed generator_ranks, discriminator_ranks;
    struct optimizer generator_optimizer, discriminator_optimizer;
    float *noise;               /* pinned host memory: one batch */
};

static struct dcgan_shape shape_of(const struct job *job)
{
    const struct options *options = job->options;
    struct dcgan_shape shape = {.image = options->image, .channels = CHANNELS, .width = options->width,
                                .latent = options->latent, .batch_norm = !options->no_batch_norm};
    if (options->inplace_clone)
        shape.shortcut = SHORTCUT_IN_PLACE_ON_CLONE;
    else if (fault_is(&job->fault, FAULT_INPLACE_ACTIVATION))
        shape.shortcut = SHORTCUT_IN_PLACE;
    else if (options->generator_shortcut)
        shape.shortcut = SHORTCUT_OUT_OF_PLACE;
    return shape;
}

/* Returns the discriminator's. */
static struct communicator *open_communicators(struct gan *gan, struct job *job)
{
    gan->shared = job->options->shared_communicator || fault_is(&job->fault, FAULT_SHARED_COMM);
    communicator_split(&job->control, &gan->generator_communicator, gan->shared ? "models" : "generator");
    if (gan->shared)
        return &gan->generator_communicator;
    communicator_split(&job->control, &gan->discriminator_communicator, "discriminator");
    return &gan->discriminator_communicator;
}

static void *gan_open(struct job *job)
{
    struct gan *gan = allocate(1, sizeof *gan);
    struct dcgan_shape shape = shape_of(job);
    uint64_t seed = (uint64_t)job->options->seed;
    struct distributed_settings settings = job_distributed(job);
    struct adam_settings adam = job_adam(job, beta1);

    dcgan_generator_open(&gan->generator, &job->device, &shape, 2 * seed);
    dcgan_discriminator_open(&gan->discriminator, &job->device, &shape, 2 * seed + 1);
    if (fault_strikes_rank(&job->fault, FAULT_MODEL_MISMATCH, job->environment.rank))
        mistake_reverse_parameters(&gan->generator.module);
    struct communicator *for_discriminator = open_communicators(gan, job);
    distributed_open(&gan->generator_ranks, &gan->generator.module, &gan->generator_communicator, &settings);
    distributed_open(&gan->discriminator_ranks, &gan->discriminator.module, for_discriminator, &settings);
    optimizer_open(&gan->generator_optimizer, &gan->generator.module, &adam);
    optimizer_open(&gan->discriminator_optimizer, &gan->discriminator.module, &adam);
    size_t floats = (size_t)(job->options->batch > SAMPLE_COUNT ? job->options->batch : SAMPLE_COUNT) *
                    (size_t)job->options->latent;
    CHECK_CUDA(cudaMallocHost((void **)&gan->noise, floats * sizeof *gan->noise));
    return gan;
}

static void gan_close(void *self)
{
    struct gan *gan = self;
    CHECK_CUDA(cudaFreeHost(gan->noise));
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

/* --- an iteration ---------------------------------------------------------------------------------------- */

/* Noise for the images at places first, first + stride, ...: by place in the global batch, so that N ranks together
 * draw what one rank would. */
static struct tensor *draw_noise(struct gan *gan, struct job *job, enum random_stream stream, int n, uint64_t first,
                                 uint64_t stride)
{
    int latent = job->options->latent;
    struct tensor *noise = tensor_new_on_tape(&job->device, shape_4d(n, latent, 1, 1));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < latent; k++)
            gan->noise[i * latent + k] = random_normal((uint64_t)job->options->seed, stream,
                                                       (first + (uint64_t)i * stride) * (uint64_t)latent + (uint64_t)k);
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(noise), gan->noise, tensor_count(noise) * sizeof(float),
                               cudaMemcpyHostToDevice, job->device.stream));
    return noise;
}

static struct tensor *generate(struct gan *gan, struct job *job, const struct batch *batch)
{
    uint64_t ranks = (uint64_t)job->environment.size, rank = (uint64_t)job->environment.rank;
    range_begin("generator", "forward");
    distributed_begin_forward(&gan->generator_ranks);
    struct tensor *noise = draw_noise(gan, job, RANDOM_NOISE, batch->n, batch->first_place * ranks + rank, ranks);
    struct tensor *images = dcgan_generate(&gan->generator, noise);
    distributed_end_forward(&gan->generator_ranks, &images, 1);
    range_end();
    return images;
}

/* The loss of taking `images` for what they are, through the discriminator's replicas. */
static struct tensor *judge(struct gan *gan, struct tensor *images, float truth)
{
    range_begin("discriminator", "forward");
    distributed_begin_forward(&gan->discriminator_ranks);
    struct tensor *logits = dcgan_judge(&gan->discriminator, images);
    distributed_end_forward(&gan->discriminator_ranks, &logits, 1);
    struct tensor *loss = op_bce_with_logits(logits, truth);
    range_end();
    return loss;
}

/* Real images first, without reduction; then generated ones, whose backward reduces the gradients of both. Returns the
 * loss, or NULL if the batch was lost. */
static struct tensor *backward_discriminator(struct gan *gan, struct job *job, struct tensor *images,
                                             struct tensor *generated)
{
    struct distributed *ranks = &gan->discriminator_ranks;
    distributed_zero_gradients(ranks);
    distributed_set_no_sync(ranks, true);
    struct tensor *loss_real = judge(gan, images, real);
    distributed_backward(ranks, loss_real);
    distributed_set_no_sync(ranks, false);
    struct tensor *loss_fake = judge(gan, op_detach(generated), fake);

    if (job_fault_strikes(job, FAULT_OOM_SKIP) && mistake_run_out_of_memory(job->iteration)) {
        if (!job->options->catch_up)
            return NULL;
        distributed_shadow_backward(ranks);
    } else {
        distributed_backward(ranks, loss_fake);
    }
    return op_add(loss_real, loss_fake);
}

/* The discriminator is only looked through: its parameters are frozen and its replicas not told. */
static struct tensor *backward_generator(struct gan *gan, struct tensor *generated)
{
    struct distributed *ranks = &gan->generator_ranks;
    distributed_zero_gradients(ranks);
    module_require_gradients(&gan->discriminator.module, false);
    struct tensor *loss = op_bce_with_logits(dcgan_judge(&gan->discriminator, generated), real);
    distributed_backward(ranks, loss);
    module_require_gradients(&gan->discriminator.module, true);
    return loss;
}

static void step(struct job *job, struct distributed *ranks, struct optimizer *optimizer)
{
    if (scaler_unscale(&job->scaler, &ranks->reducer)) {
        range_begin(ranks->module->name, "step");
        if (job->options->clip > 0)
            reducer_clip_gradients(&ranks->reducer, (float)job->options->clip);
        optimizer_step(optimizer);
        range_end();
    }
    replicas_announce(ranks);
}

/* Steps with the averages of the gradients that backward has computed. */
static void update_discriminator(struct gan *gan, struct job *job)
{
    struct distributed *ranks = &gan->discriminator_ranks;
    bool early = job_fault_strikes(job, FAULT_EARLY_STEP);
    if (job_fault_strikes(job, FAULT_INPLACE_BUCKET))
        reducer_clip_gradients(&ranks->reducer, 0.01f);         /* too early: the AllReduce is in flight */
    if (early)
        step(job, ranks, &gan->discriminator_optimizer);        /* too early: the gradients are not averaged yet */
    distributed_finish_reduction(ranks);
    if (!early)
        step(job, ranks, &gan->discriminator_optimizer);
}

static void update_generator(struct gan *gan, struct job *job)
{
    distributed_finish_reduction(&gan->generator_ranks);
    if (job_fault_strikes(job, FAULT_AMP_SKIP))
        mistake_overflow_half(&job->device);
    step(job, &gan->generator_ranks, &gan->generator_optimizer);
}

/* The generator learns from the discriminator that this batch has trained. */
static bool update_in_turn(struct gan *gan, struct job *job, const struct batch *batch, struct tensor *generated,
                           struct tensor **losses)
{
    int updates = job->options->discriminator_updates;
    if (job_fault_strikes(job, FAULT_UNEVEN_UPDATES))
        updates++;                                  /* "it lags behind here": the other ranks don't know */
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

/* Neither backward pass needs the other's step, so that their order is free; but it must be the same on all ranks. */
static bool update_at_once(struct gan *gan, struct job *job, const struct batch *batch, struct tensor *generated,
                           struct tensor **losses)
{
    bool generator_first = job_fault_strikes(job, FAULT_SHARED_COMM) || job_fault_strikes(job, FAULT_COMM_ORDER);
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

static bool is_simultaneous(const struct job *job)
{
    return job->options->simultaneous || fault_is(&job->fault, FAULT_SHARED_COMM) ||
           fault_is(&job->fault, FAULT_COMM_ORDER);
}

static bool gan_iterate(void *self, struct job *job, const struct batch *batch, struct tensor **losses)
{
    struct gan *gan = self;
    if (job_fault_strikes(job, FAULT_WRONG_DEVICE))
        mistake_move_first_weights(&gan->discriminator.module);
    gan->discriminator_ranks.reducer.fault = job_fault_now(job);
    struct tensor *generated = generate(gan, job, batch);
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
static void gan_shadow(void *self, struct job *job)
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

/* --- state and results ----------------------------------------------------------------------------------- */

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
    sections[1] = (struct checkpoint_section){&gan->discriminator.module, &gan->discriminator_optimizer};
    return 2;
}

static void gan_finish(void *self, struct job *job)
{
    struct gan *gan = self;
    const char *path = job->options->samples;
    if (!path)
        return;
    gan->generator.module.training = false;
    struct tensor *noise = draw_noise(gan, job, RANDOM_SAMPLES, SAMPLE_COUNT, 0, 1);
    struct tensor *images = dcgan_generate(&gan->generator, noise);
    float *pixels = allocate(tensor_count(images), sizeof *pixels);
    tensor_download(images, pixels);
    gan->generator.module.training = true;

    struct error err = {0};
    if (samples_png_write(path, pixels, SAMPLE_COUNT, SAMPLE_COLUMNS, job->options->image, &err) != 0)
        fatal("%s", err.text);
    free(pixels);
}

const struct trainee trainee_gan = {
    .name = "gan", .mode = "ddp", .losses = {"discriminator", "generator"}, .rate = 2e-3f, .open = gan_open, .iterate = gan_iterate,
    .shadow = gan_shadow, .take_state_of = gan_take_state_of, .finish = gan_finish, .sections = gan_sections,
    .close = gan_close,
};
