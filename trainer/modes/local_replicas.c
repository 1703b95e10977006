/* local_replicas.c: opens, feeds and closes the replicas that one process keeps on all devices. */
#include "trainer/modes/local_replicas.h"

#include <stdlib.h>
#include <string.h>

#include "interpose/ddpcheck.h"
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/trace_ranges.h"

enum { MASTER = 0 };

static const struct local_kind *const kinds[] = {&local_classifier, &local_gan};

static const struct local_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    fatal("--model %s can't be replicated in one process", name);
}

static void open_replica(struct local_replicas *replicas, struct training_job *job, int index)
{
    struct local_replica *replica = &replicas->at[index];
    replica->index = index;
    replica->device = index == MASTER ? &job->device : &replica->own_device;
    if (index != MASTER)
        device_open(&replica->own_device, index);
    if (index != MASTER)
        scaler_add_device(replicas->scaler, &replica->own_device);
    local_replica_use(replica);
    replicas->kind->open(replica, job);
    for (int model = 0; model < replicas->kind->turns; model++)
        gradients_open(&replica->gradients[model], replica->modules[model]);
    CHECK_CUDA(cudaMalloc((void **)&replica->labels,
                          (size_t)job->options->batch * sizeof *replica->labels));
}

void local_replicas_open(struct local_replicas *replicas, struct training_job *job)
{
    int count = job->devices;
    ncclComm_t *communicators = allocate((size_t)count, sizeof *communicators);
    *replicas = (struct local_replicas){.kind = find_kind(job->trainee->name),
                                        .count = count,
                                        .scaler = &job->scaler,
                                        .at = allocate((size_t)count, sizeof *replicas->at)};
    CHECK_NCCL(ncclCommInitAll(communicators, count, NULL));
    for (int i = 0; i < count; i++) {
        open_replica(replicas, job, i);
        replicas->at[i].communicator = communicators[i];
    }
    free(communicators);
    local_replica_use(&replicas->at[MASTER]);
    CHECK_CUDA(cudaEventCreateWithFlags(&replicas->master_ready, cudaEventDisableTiming));
}

static void close_replica(const struct local_replicas *replicas, struct local_replica *replica)
{
    local_replica_use(replica);
    device_wait_for_compute(replica->device);
    CHECK_NCCL(ncclCommDestroy(replica->communicator));
    CHECK_CUDA(cudaFree(replica->labels));
    for (int model = 0; model < replicas->kind->turns; model++)
        gradients_close(&replica->gradients[model]);
    replicas->kind->close(replica);
    if (replica->index == MASTER)
        return;
    scaler_drop_device(replicas->scaler, &replica->own_device);
    device_close(&replica->own_device);
}

void local_replicas_close(struct local_replicas *replicas)
{
    for (int i = replicas->count - 1; i >= MASTER; i--)
        close_replica(replicas, &replicas->at[i]);
    CHECK_CUDA(cudaEventDestroy(replicas->master_ready));
    free(replicas->at);
}

void local_replica_use(const struct local_replica *replica)
{
    CHECK_CUDA(cudaSetDevice(replica->device->index));
}

void local_replicas_record_master(struct local_replicas *replicas)
{
    local_replica_use(&replicas->at[MASTER]);
    CHECK_CUDA(cudaEventRecord(replicas->master_ready, replicas->at[MASTER].device->stream));
}

void local_replica_wait_for_master(const struct local_replicas *replicas,
                                   struct local_replica *replica)
{
    CHECK_CUDA(cudaStreamWaitEvent(replica->device->stream, replicas->master_ready, 0));
}

/* From the master's memory to the replica's own, on the replica's stream. */
static void copy_part(struct local_replica *replica, const struct data_batch *part, int master)
{
    struct device *device = replica->device;
    struct tensor *images = tensor_new_on_tape(device, part->images->shape);
    CHECK_CUDA(cudaMemcpyPeerAsync(tensor_data(images), device->index, tensor_data(part->images),
                                   master, tensor_count(images) * sizeof(float), device->stream));
    CHECK_CUDA(cudaMemcpyPeerAsync(replica->labels, device->index, part->labels, master,
                                   (size_t)part->n * sizeof *replica->labels, device->stream));
    replica->part = *part;
    replica->part.images = images;
    replica->part.labels = replica->labels;
}

void local_replicas_scatter(struct local_replicas *replicas, const struct data_batch *batch)
{
    range_begin("replicas", "scatter");
    local_replicas_record_master(replicas);
    for (int i = 0; i < replicas->count; i++) {
        struct local_replica *replica = &replicas->at[i];
        struct data_batch part = batch_part(batch, i, replicas->count);
        local_replica_use(replica);
        replica->part = part;
        if (i == MASTER)
            continue;
        local_replica_wait_for_master(replicas, replica);
        copy_part(replica, &part, replicas->at[MASTER].device->index);
    }
    local_replica_use(&replicas->at[MASTER]);
    range_end();
}

void local_replica_learn(const struct local_replicas *replicas, struct local_replica *replica,
                         int turn)
{
    local_replica_use(replica);
    gradients_zero(&replica->gradients[turn]);
    replicas->kind->learn(replica, turn);
}

void local_replica_backward(struct local_replica *replica, int turn, struct tensor *loss)
{
    struct error err = {0};
    range_begin(replica->modules[turn]->name, "backward");
    if (autograd_backward(loss, &err) != 0)
        fatal("device %d: %s", replica->index, err.text);
    range_end();
}

void local_replica_announce(const struct local_replica *replica, int model)
{
    const struct module *module = replica->modules[model];
    for (int i = 0; i < module->parameter_count; i++)
        ddpcheck_hash(module->parameters[i]->name, tensor_data(module->parameters[i]),
                      tensor_count(module->parameters[i]) * sizeof(float), replica->communicator,
                      replica->device->stream);
}

void local_replicas_end_batch(struct local_replicas *replicas)
{
    for (int i = MASTER + 1; i < replicas->count; i++) {
        local_replica_use(&replicas->at[i]);
        device_end_batch(replicas->at[i].device);
    }
    local_replica_use(&replicas->at[MASTER]);
}
