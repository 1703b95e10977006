/* mirrored.c: --mode mirrored: one thread drives all devices (what MirroredStrategy is in
 * TensorFlow). Each device has a replica with an optimizer of its own; their gradients are averaged
 * on all of them, so that equal steps keep the replicas equal.
 *
 *        device 0   forward, backward ─┐           ┌─ step
 *        device 1   forward, backward ─┤ AllReduce ├─ step
 *        device 2   forward, backward ─┘           └─ step
 *
 * Each device's AllReduce waits for all others', and the one thread has to issue them all: in one
 * ncclGroup, because a call outside of a group may wait for its device to be served before the next
 * device's is made (NCCL user guide, "Management Of Multiple GPUs From One Thread"). */
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/modes/local_replicas.h"
#include "trainer/modes/modes.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_cnn.h"
#include "trainer/train_gan.h"

struct mirrored {
    struct local_replicas replicas;
    struct optimizer (*optimizers)[LOCAL_MODELS]; /* of each replica */
};

static void *mirrored_open(struct training_job *job)
{
    struct mirrored *mirrored = allocate(1, sizeof *mirrored);
    struct local_replicas *replicas = &mirrored->replicas;
    local_replicas_open(replicas, job);
    struct adam_settings adam = replicas->kind->adam(job);
    mirrored->optimizers = allocate((size_t)replicas->count, sizeof *mirrored->optimizers);
    for (int i = 0; i < replicas->count; i++) {
        local_replica_use(&replicas->at[i]);
        for (int model = 0; model < replicas->kind->turns; model++)
            optimizer_open(&mirrored->optimizers[i][model], replicas->at[i].modules[model], &adam);
    }
    local_replica_use(&replicas->at[0]);
    return mirrored;
}

static void mirrored_close(void *self)
{
    struct mirrored *mirrored = self;
    for (int i = 0; i < mirrored->replicas.count; i++)
        for (int model = 0; model < mirrored->replicas.kind->turns; model++)
            optimizer_close(&mirrored->optimizers[i][model]);
    free(mirrored->optimizers);
    local_replicas_close(&mirrored->replicas);
    free(mirrored);
}

static void average(struct local_replica *replica, struct tensor *tensor)
{
    CHECK_NCCL(ncclAllReduce(tensor_data(tensor), tensor_data(tensor), tensor_count(tensor),
                             ncclFloat, ncclAvg, replica->communicator, replica->device->stream));
    tensor_wrote_in_place(tensor);
}

static void reduce_in_group(struct local_replicas *replicas, int turn)
{
    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < replicas->count; i++) {
        average(&replicas->at[i], replicas->at[i].gradients[turn].all);
        average(&replicas->at[i], replicas->at[i].losses[turn]);
    }
    CHECK_NCCL(ncclGroupEnd());
}

/* The mistake: as if a device's reduction could be done before the next device's was begun. */
static void reduce_one_by_one(struct local_replicas *replicas, int turn)
{
    for (int i = 0; i < replicas->count; i++) {
        local_replica_use(&replicas->at[i]);
        average(&replicas->at[i], replicas->at[i].gradients[turn].all);
        average(&replicas->at[i], replicas->at[i].losses[turn]);
        device_wait_for_compute(replicas->at[i].device);
    }
}

static void mirrored_reduce(struct local_replicas *replicas, struct training_job *job, int turn)
{
    range_begin(replicas->at[0].modules[turn]->name, "reduce");
    if (fault_is(&job->fault, FAULT_MIRRORED_NO_GROUP) && job->iteration >= job->fault.iteration)
        reduce_one_by_one(replicas, turn);
    else
        reduce_in_group(replicas, turn);
    range_end();
}

static void mirrored_step(struct mirrored *mirrored, int turn)
{
    struct local_replicas *replicas = &mirrored->replicas;
    if (!scaler_agrees_to_step(replicas->scaler))
        return;
    range_begin(replicas->at[0].modules[turn]->name, "step");
    for (int i = 0; i < replicas->count; i++) {
        local_replica_use(&replicas->at[i]);
        scaler_divide(replicas->scaler, &replicas->at[i].gradients[turn]);
        optimizer_step(&mirrored->optimizers[i][turn]);
        local_replica_announce(&replicas->at[i], turn);
    }
    range_end();
}

static bool mirrored_iterate(void *self, struct training_job *job, const struct data_batch *batch,
                             struct tensor **losses)
{
    struct mirrored *mirrored = self;
    struct local_replicas *replicas = &mirrored->replicas;
    local_replicas_scatter(replicas, batch);
    for (int turn = 0; turn < replicas->kind->turns; turn++) {
        for (int i = 0; i < replicas->count; i++)
            local_replica_learn(replicas, &replicas->at[i], turn);
        mirrored_reduce(replicas, job, turn);
        mirrored_step(mirrored, turn);
        losses[turn] = replicas->at[0].losses[turn];
    }
    local_replicas_end_batch(replicas);
    return true;
}

static void mirrored_finish(void *self, struct training_job *job)
{
    struct local_replicas *replicas = &((struct mirrored *)self)->replicas;
    replicas->kind->finish(&replicas->at[0], job);
}

const struct trainee trainee_mirrored = {
    .name = "cnn",
    .mode = "mirrored",
    .one_process = true,
    .losses = CNN_LOSSES,
    .rate = CNN_RATE,
    .open = mirrored_open,
    .iterate = mirrored_iterate,
    .finish = mirrored_finish,
    .close = mirrored_close,
};

const struct trainee trainee_mirrored_gan = {
    .name = "gan",
    .mode = "mirrored",
    .one_process = true,
    .losses = GAN_LOSSES,
    .rate = GAN_RATE,
    .open = mirrored_open,
    .iterate = mirrored_iterate,
    .finish = mirrored_finish,
    .close = mirrored_close,
};
