/* local_gan.c: the GAN as a replica of one process: two models, two turns. Each turn computes what
 * train_gan.c computes with a process for each replica. */
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/evaluate.h"
#include "trainer/modes/local_replicas.h"
#include "trainer/models/dcgan.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_gan.h"

enum { DISCRIMINATOR, GENERATOR }; /* models and turns */

struct replica_gan {
    struct dcgan_discriminator discriminator;
    struct dcgan_generator generator;
    struct noise noise;
    struct tensor *generated; /* in this iteration, on the tape */
};

static void open_gan(struct local_replica *replica, struct training_job *job)
{
    struct replica_gan *gan = allocate(1, sizeof *gan);
    job_open_discriminator(job, &gan->discriminator, replica->device);
    job_open_generator(job, &gan->generator, replica->device);
    noise_open(&gan->noise, (uint64_t)job->options->seed, job->options->latent,
               job->options->batch);
    replica->models = gan;
    replica->modules[DISCRIMINATOR] = &gan->discriminator.module;
    replica->modules[GENERATOR] = &gan->generator.module;
}

static void close_gan(struct local_replica *replica)
{
    struct replica_gan *gan = replica->models;
    noise_close(&gan->noise);
    module_close(&gan->generator.module);
    module_close(&gan->discriminator.module);
    free(gan);
}

static struct tensor *replica_generate(struct replica_gan *gan, const struct local_replica *replica)
{
    const struct data_batch *part = &replica->part;
    range_begin("generator", "forward");
    struct tensor *noise =
        noise_draw(&gan->noise, replica->device, RANDOM_NOISE, part->n, part->first_place, 1);
    struct tensor *images = dcgan_generate(&gan->generator, noise);
    range_end();
    return images;
}

static struct tensor *replica_judge(struct replica_gan *gan, struct tensor *images, float truth)
{
    range_begin("discriminator", "forward");
    struct tensor *loss = op_bce_with_logits(dcgan_judge(&gan->discriminator, images), truth);
    range_end();
    return loss;
}

static void replica_learn_to_judge(struct replica_gan *gan, struct local_replica *replica)
{
    gan->generated = replica_generate(gan, replica);
    struct tensor *loss_real = replica_judge(gan, replica->part.images, GAN_REAL);
    local_replica_backward(replica, DISCRIMINATOR, loss_real);
    struct tensor *loss_fake = replica_judge(gan, op_detach(gan->generated), GAN_FAKE);
    local_replica_backward(replica, DISCRIMINATOR, loss_fake);
    replica->losses[DISCRIMINATOR] = op_add(loss_real, loss_fake);
}

/* Through the discriminator, whose own gradients are not wanted. */
static void replica_learn_to_generate(struct replica_gan *gan, struct local_replica *replica)
{
    module_require_gradients(&gan->discriminator.module, false);
    replica->losses[GENERATOR] = replica_judge(gan, gan->generated, GAN_REAL);
    local_replica_backward(replica, GENERATOR, replica->losses[GENERATOR]);
    module_require_gradients(&gan->discriminator.module, true);
}

static void replica_learn_gan(struct local_replica *replica, int turn)
{
    if (turn == DISCRIMINATOR)
        replica_learn_to_judge(replica->models, replica);
    else
        replica_learn_to_generate(replica->models, replica);
}

static void replica_evaluate_gan(struct local_replica *master, struct training_job *job)
{
    struct replica_gan *gan = master->models;
    evaluate_generator(job, &gan->generator);
}

const struct local_kind local_gan = {
    .name = "gan",
    .turns = 2,
    .runs = {1u << DISCRIMINATOR | 1u << GENERATOR, 1u << DISCRIMINATOR},
    .open = open_gan,
    .close = close_gan,
    .learn = replica_learn_gan,
    .finish = replica_evaluate_gan,
    .adam = job_gan_adam,
};
