#include "trainer/modes/local_replicas.h"

#include <stdlib.h>

#include "interpose/ddpcheck.h"
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"

enum { MASTER = 0 };

static void open_replica(struct local_replica *replica, struct job *job, int index)
{
    struct cnn_shape shape = job_cnn_shape(job);
    size_t n = (size_t)job->options->batch;
    *replica = (struct local_replica){.index = index, .device = index == MASTER ? &job->device : &replica->own_device};
    if (index != MASTER)
        device_open(&replica->own_device, index);
    local_replica_use(replica);
    cnn_open(&replica->cnn, replica->device, &shape, (uint64_t)job->options->seed);
    gradients_open(&replica->gradients, &replica->cnn.module);
    CHECK_CUDA(cudaMalloc((void **)&replica->labels, n * sizeof *replica->labels));
    CHECK_CUDA(cudaMalloc((void **)&replica->correct, sizeof *replica->correct));
}

void local_replicas_open(struct local_replicas *replicas, struct job *job)
{
    int count = job->devices;
    ncclComm_t *communicators = allocate((size_t)count, sizeof *communicators);
    *replicas = (struct local_replicas){.at = allocate((size_t)count, sizeof *replicas->at), .count = count};
    CHECK_NCCL(ncclCommInitAll(communicators, count, NULL));
    for (int i = 0; i < count; i++) {
        open_replica(&replicas->at[i], job, i);
        replicas->at[i].communicator = communicators[i];
    }
    free(communicators);
    local_replica_use(&replicas->at[MASTER]);
    CHECK_CUDA(cudaEventCreateWithFlags(&replicas->master_ready, cudaEventDisableTiming));
}

static void close_replica(struct local_replica *replica)
{
    local_replica_use(replica);
    device_wait_for_compute(replica->device);
    CHECK_NCCL(ncclCommDestroy(replica->communicator));
    CHECK_CUDA(cudaFree(replica->correct));
    CHECK_CUDA(cudaFree(replica->labels));
    gradients_close(&replica->gradients);
    module_close(&replica->cnn.module);
    if (replica->index != MASTER)
        device_close(&replica->own_device);
}

void local_replicas_close(struct local_replicas *replicas)
{
    for (int i = replicas->count - 1; i >= MASTER; i--)
        close_replica(&replicas->at[i]);
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

void local_replica_wait_for_master(const struct local_replicas *replicas, struct local_replica *replica)
{
    CHECK_CUDA(cudaStreamWaitEvent(replica->device->stream, replicas->master_ready, 0));
}

/* From the master's memory to the replica's own, on the replica's stream. */
static void copy_part(struct local_replica *replica, const struct batch *part, int master)
{
    struct device *device = replica->device;
    struct tensor *images = tensor_new_on_tape(device, part->images->shape);
    CHECK_CUDA(cudaMemcpyPeerAsync(tensor_data(images), device->index, tensor_data(part->images), master,
                                   tensor_count(images) * sizeof(float), device->stream));
    CHECK_CUDA(cudaMemcpyPeerAsync(replica->labels, device->index, part->labels, master,
                                   (size_t)part->n * sizeof *replica->labels, device->stream));
    replica->part = (struct batch){.n = part->n, .images = images, .labels = replica->labels};
}

void local_replicas_scatter(struct local_replicas *replicas, const struct batch *batch)
{
    range_begin("replicas", "scatter");
    local_replicas_record_master(replicas);
    for (int i = 0; i < replicas->count; i++) {
        struct local_replica *replica = &replicas->at[i];
        struct batch part = batch_part(batch, i, replicas->count);
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

void local_replica_learn(struct local_replica *replica)
{
    struct error err = {0};
    local_replica_use(replica);
    gradients_zero(&replica->gradients);
    range_begin("replica", "forward");
    struct tensor *logits = cnn_classify(&replica->cnn, replica->part.images, true);
    replica->loss = op_cross_entropy(logits, replica->part.labels, replica->correct);
    range_end();
    range_begin("replica", "backward");
    if (autograd_backward(replica->loss, &err) != 0)
        fatal("device %d: %s", replica->index, err.text);
    range_end();
}

void local_replica_announce(const struct local_replica *replica)
{
    const struct module *module = &replica->cnn.module;
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
