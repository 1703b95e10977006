/* pipeline_gan.c: --mode pipeline --model gan: the generator on one rank, the discriminator on the
 * other. Generated images go forward, and after the discriminator's step their gradients come back,
 * both in micro-batches, so that a rank works on one while the next is on its way (G: generate, D:
 * learn to judge real and generated images, J: judge again, to teach the generator):
 *
 *        generator       G0 ─ G1 ─ G2 ─ G3 ─────────────────────────── B0 ─ B1 ─ B2 ─ B3 ─ step
 *                          \    \    \    \                           /    /    /    /
 *        discriminator       D0 ─ D1 ─ D2 ─ D3 ─ step ─────────── J0 ── J1 ── J2 ── J3
 *
 * All messages go forward first, then all come back: nothing crosses. Images are kept on both ranks
 * until the end of the batch: the discriminator's, to judge them again; the generator's, to go back
 * through the model that made them. */
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/evaluate.h"
#include "trainer/modes/modes.h"
#include "trainer/modes/stage.h"
#include "trainer/models/dcgan.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_gan.h"

struct gan_pipeline {
    union { /* by rank */
        struct dcgan_generator generator;
        struct dcgan_discriminator discriminator;
    };
    struct stage stage;
    struct noise noise;     /* the generator's */
    struct tensor **images; /* generated, of each micro-batch */
};

static struct module *open_model(struct gan_pipeline *pipeline, struct training_job *job)
{
    if (job->environment.rank == FRONT) {
        job_open_generator(job, &pipeline->generator, &job->device);
        return &pipeline->generator.module;
    }
    job_open_discriminator(job, &pipeline->discriminator, &job->device);
    return &pipeline->discriminator.module;
}

static void *gan_pipeline_open(struct training_job *job)
{
    const struct train_options *options = job->options;
    struct gan_pipeline *pipeline = allocate(1, sizeof *pipeline);
    struct adam_settings adam = job_gan_adam(job);
    stage_open(&pipeline->stage, job, open_model(pipeline, job), &adam);
    noise_open(&pipeline->noise, (uint64_t)options->seed, options->latent, options->batch);
    pipeline->images = allocate((size_t)options->micro_batches, sizeof *pipeline->images);
    return pipeline;
}

static void gan_pipeline_close(void *self)
{
    struct gan_pipeline *pipeline = self;
    struct module *module = pipeline->stage.module;
    free(pipeline->images);
    noise_close(&pipeline->noise);
    stage_close(&pipeline->stage);
    module_close(module);
    free(pipeline);
}

/* --- the generator's rank --- */

static void run_generator(struct gan_pipeline *pipeline, const struct data_batch *batch)
{
    struct stage *stage = &pipeline->stage;
    int count = stage->micro_batches, n = batch->n / count, latent = pipeline->noise.latent;
    struct tensor *noise = noise_draw(&pipeline->noise, stage->module->device, RANDOM_NOISE,
                                      batch->n, batch->first_place, 1);
    for (int micro = 0; micro < count; micro++) {
        range_begin("generator", "forward");
        struct tensor *part = tensor_view(noise, (size_t)micro * (size_t)n * (size_t)latent,
                                          shape_4d(n, latent, 1, 1));
        device_tape_tensor(stage->module->device, part);
        pipeline->images[micro] = dcgan_generate(&pipeline->generator, part);
        range_end();
        stage_send(stage, pipeline->images[micro]);
    }
    for (int micro = 0; micro < count; micro++) {
        struct tensor *images = pipeline->images[micro];
        stage_backward_from(stage, images, stage_receive(stage, images->shape));
    }
    stage_step_if_all_finite(stage);
}

/* --- the discriminator's rank --- */

static struct tensor *pipeline_judge(struct gan_pipeline *pipeline, struct tensor *images,
                                     float truth)
{
    range_begin("discriminator", "forward");
    struct tensor *loss = op_bce_with_logits(dcgan_judge(&pipeline->discriminator, images), truth);
    range_end();
    stage_backward(&pipeline->stage, loss);
    return loss;
}

static struct tensor *add_loss(struct tensor *sum, struct tensor *loss)
{
    return sum ? op_add(sum, loss) : loss;
}

/* Returns the sum of the micro-batches' losses. */
static struct tensor *pipeline_learn_to_judge(struct gan_pipeline *pipeline,
                                              const struct data_batch *batch)
{
    struct stage *stage = &pipeline->stage;
    int count = stage->micro_batches;
    struct tensor *sum = NULL;
    for (int micro = 0; micro < count; micro++) {
        struct data_batch part = batch_part(batch, micro, count);
        struct tensor *images = stage_receive_activations(stage, part.images->shape);
        pipeline->images[micro] = images;
        sum = add_loss(sum, pipeline_judge(pipeline, part.images, GAN_REAL));
        sum = add_loss(sum, pipeline_judge(pipeline, op_detach(images), GAN_FAKE));
    }
    stage_step_if_finite_here(stage); /* what the generator sent was looked at on the way */
    return sum;
}

/* The images' gradients go back; the discriminator's own are not wanted. */
static struct tensor *teach(struct gan_pipeline *pipeline)
{
    struct stage *stage = &pipeline->stage;
    struct tensor *sum = NULL;
    module_require_gradients(stage->module, false);
    for (int micro = 0; micro < stage->micro_batches; micro++) {
        struct tensor *images = pipeline->images[micro];
        sum = add_loss(sum, pipeline_judge(pipeline, images, GAN_REAL));
        stage_send(stage, images->gradient);
    }
    module_require_gradients(stage->module, true);
    return sum;
}

static bool gan_pipeline_iterate(void *self, struct training_job *job,
                                 const struct data_batch *batch, struct tensor **losses)
{
    struct gan_pipeline *pipeline = self;
    struct tensor *sums[TRAINEE_MAX_LOSSES] = {NULL};
    gradients_zero(&pipeline->stage.gradients);
    if (job->environment.rank == FRONT) {
        run_generator(pipeline, batch);
    } else {
        sums[0] = pipeline_learn_to_judge(pipeline, batch);
        sums[1] = teach(pipeline);
        scaler_agrees_to_step(
            pipeline->stage.scaler); /* the generator asks; both scales move alike */
    }
    for (int i = 0; i < TRAINEE_MAX_LOSSES; i++)
        losses[i] = stage_share_loss(&pipeline->stage, sums[i]);
    return true;
}

static void gan_pipeline_finish(void *self, struct training_job *job)
{
    struct gan_pipeline *pipeline = self;
    evaluate_generator(job, &pipeline->generator); /* rank 0's */
}

const struct trainee trainee_pipeline_gan = {
    .name = "gan",
    .mode = "pipeline",
    .ranks = 2,
    .same_batch = true,
    .losses = GAN_LOSSES,
    .rate = GAN_RATE,
    .open = gan_pipeline_open,
    .iterate = gan_pipeline_iterate,
    .finish = gan_pipeline_finish,
    .close = gan_pipeline_close,
};
