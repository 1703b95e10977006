/* --mode dp: one process, one model, lent to all devices for each batch (what DataParallel is in PyTorch).
 *
 *        master     replicate, scatter ── forward, backward ──┐
 *        device 1                      └─ forward, backward ──┤ Reduce to the master ── step
 *        device 2                      └─ forward, backward ──┘
 *
 * Only the master's model is trained. Before each forward the others' parameters and buffers are overwritten with its
 * own; what they do to their buffers meanwhile (batch norm's statistics) is lost. A thread for each device runs forward
 * and backward. All of the model goes to all devices in each iteration, and the step is made by one of them while the
 * others wait: the reasons why a process for each device (--mode ddp) is faster. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/check.h"
#include "trainer/evaluate.h"
#include "trainer/modes/local_replicas.h"
#include "trainer/modes/modes.h"
#include "trainer/trace_ranges.h"

enum { MASTER = 0 };

struct data_parallel {
    struct local_replicas replicas;
    struct optimizer optimizer;     /* of the master */
    pthread_t *threads;
};

static void *data_parallel_open(struct job *job)
{
    struct data_parallel *parallel = allocate(1, sizeof *parallel);
    struct adam_settings adam = job_cnn_adam(job);
    local_replicas_open(&parallel->replicas, job);
    optimizer_open(&parallel->optimizer, &parallel->replicas.at[MASTER].cnn.module, &adam);
    parallel->threads = allocate((size_t)parallel->replicas.count, sizeof *parallel->threads);
    return parallel;
}

static void data_parallel_close(void *self)
{
    struct data_parallel *parallel = self;
    free(parallel->threads);
    optimizer_close(&parallel->optimizer);
    local_replicas_close(&parallel->replicas);
    free(parallel);
}

/* --- replicate ------------------------------------------------------------------------------------------- */

static void copy_tensor(struct local_replica *replica, struct tensor *to, const struct tensor *from)
{
    CHECK_CUDA(cudaMemcpyPeerAsync(tensor_data(to), replica->device->index, tensor_data(from),
                                   tensor_device(from)->index, tensor_count(to) * sizeof(float),
                                   replica->device->stream));
    tensor_wrote_in_place(to);
}

static void refresh(struct local_replica *replica, const struct module *master)
{
    struct module *module = &replica->cnn.module;
    for (int i = 0; i < module->parameter_count; i++)
        copy_tensor(replica, module->parameters[i], master->parameters[i]);
    if (module->all_buffers)
        copy_tensor(replica, module->all_buffers, master->all_buffers);
}

/* stale: a replica to be left out, the mistake of a cache of replicas that does not see the step; -1: none. */
static void replicate(struct local_replicas *replicas, int stale)
{
    range_begin("replicas", "replicate");
    local_replicas_record_master(replicas);
    for (int i = 0; i < replicas->count; i++) {
        struct local_replica *replica = &replicas->at[i];
        local_replica_use(replica);
        if (i != MASTER && i != stale) {
            local_replica_wait_for_master(replicas, replica);
            refresh(replica, &replicas->at[MASTER].cnn.module);
        }
        local_replica_announce(replica);
    }
    local_replica_use(&replicas->at[MASTER]);
    range_end();
}

/* --- forward and backward, side by side ------------------------------------------------------------------ */

static void *learn(void *replica)
{
    local_replica_learn(replica);
    return NULL;
}

/* The master's part is the calling thread's. */
static void learn_in_threads(struct data_parallel *parallel)
{
    struct local_replicas *replicas = &parallel->replicas;
    for (int i = MASTER + 1; i < replicas->count; i++) {
        int error = pthread_create(&parallel->threads[i], NULL, learn, &replicas->at[i]);
        if (error)
            fatal("can't start a thread for device %d: %s", i, strerror(error));
    }
    local_replica_learn(&replicas->at[MASTER]);
    for (int i = MASTER + 1; i < replicas->count; i++)
        pthread_join(parallel->threads[i], NULL);
}

/* --- gather and reduce ----------------------------------------------------------------------------------- */

/* The master's tensor becomes the mean; the others keep theirs. */
static void reduce_to_master(struct local_replica *replica, struct tensor *tensor)
{
    CHECK_NCCL(ncclReduce(tensor_data(tensor), tensor_data(tensor), tensor_count(tensor), ncclFloat, ncclAvg, MASTER,
                          replica->communicator, replica->device->stream));
    tensor_wrote_in_place(tensor);
}

static void gather_and_reduce(struct local_replicas *replicas)
{
    range_begin("replicas", "reduce");
    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < replicas->count; i++) {
        reduce_to_master(&replicas->at[i], replicas->at[i].gradients.all);
        reduce_to_master(&replicas->at[i], replicas->at[i].loss);
    }
    CHECK_NCCL(ncclGroupEnd());
    range_end();
}

static bool data_parallel_iterate(void *self, struct job *job, const struct batch *batch, struct tensor **losses)
{
    struct data_parallel *parallel = self;
    struct local_replicas *replicas = &parallel->replicas;
    bool forget = fault_is(&job->fault, FAULT_DP_STALE_REPLICA) && job->iteration >= job->fault.iteration;
    replicate(replicas, forget ? job->fault.rank : -1);
    local_replicas_scatter(replicas, batch);
    learn_in_threads(parallel);
    gather_and_reduce(replicas);
    range_begin("master", "step");
    optimizer_step(&parallel->optimizer);
    range_end();
    local_replicas_end_batch(replicas);
    losses[0] = replicas->at[MASTER].loss;
    return true;
}

static void data_parallel_finish(void *self, struct job *job)
{
    struct data_parallel *parallel = self;
    evaluate_classifier(job, &parallel->replicas.at[MASTER].cnn);
}

const struct trainee trainee_data_parallel = {
    .name = "cnn", .mode = "dp", .one_process = true, .losses = {"classifier"}, .rate = CNN_RATE,
    .open = data_parallel_open, .iterate = data_parallel_iterate, .finish = data_parallel_finish,
    .close = data_parallel_close,
};
