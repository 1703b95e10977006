/* data_parallel.c: --mode dp: one process, one set of models, lent to all devices for each batch
 * (what DataParallel is in PyTorch).
 *
 *        master     replicate, scatter ── forward, backward ──┐
 *        device 1                      └─ forward, backward ──┤ Reduce to the master ── step
 *        device 2                      └─ forward, backward ──┘
 *
 * Only the master's models are trained. Before a model's first forward pass of a turn the others'
 * parameters and buffers are overwritten with its own; what they do to their buffers meanwhile
 * (batch norm's statistics) is lost. A thread for each device runs forward and backward. All of the
 * model goes to all devices in each iteration, and the step is made by one of them while the others
 * wait: the reasons why a process for each device (--mode ddp) is faster. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/check.h"
#include "trainer/modes/local_replicas.h"
#include "trainer/modes/modes.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_cnn.h"
#include "trainer/train_gan.h"

enum { MASTER = 0 };

/* What a thread is to do. */
struct replica_task {
    const struct local_replicas *replicas;
    struct local_replica *replica;
    int turn;
    pthread_t thread;
};

struct data_parallel {
    struct local_replicas replicas;
    struct optimizer optimizers[LOCAL_MODELS]; /* of the master's models */
    struct replica_task *tasks;
};

static void *data_parallel_open(struct training_job *job)
{
    struct data_parallel *parallel = allocate(1, sizeof *parallel);
    struct local_replicas *replicas = &parallel->replicas;
    local_replicas_open(replicas, job);
    struct adam_settings adam = replicas->kind->adam(job);
    for (int model = 0; model < replicas->kind->turns; model++)
        optimizer_open(&parallel->optimizers[model], replicas->at[MASTER].modules[model], &adam);
    parallel->tasks = allocate((size_t)replicas->count, sizeof *parallel->tasks);
    return parallel;
}

static void data_parallel_close(void *self)
{
    struct data_parallel *parallel = self;
    free(parallel->tasks);
    for (int model = 0; model < parallel->replicas.kind->turns; model++)
        optimizer_close(&parallel->optimizers[model]);
    local_replicas_close(&parallel->replicas);
    free(parallel);
}

/* --- replicate --- */

static void copy_tensor(struct local_replica *replica, struct tensor *to, const struct tensor *from)
{
    CHECK_CUDA(cudaMemcpyPeerAsync(tensor_data(to), replica->device->index, tensor_data(from),
                                   tensor_device(from)->index, tensor_count(to) * sizeof(float),
                                   replica->device->stream));
    tensor_wrote_in_place(to);
}

static void refresh(struct local_replica *replica, struct module *module,
                    const struct module *master)
{
    for (int i = 0; i < module->parameter_count; i++)
        copy_tensor(replica, module->parameters[i], master->parameters[i]);
    if (module->all_buffers)
        copy_tensor(replica, module->all_buffers, master->all_buffers);
}

/* stale: a replica to be left out, the mistake of a cache of replicas that does not see the step;
 * -1: none. */
static void replicate(struct local_replicas *replicas, int model, int stale)
{
    range_begin("replicas", "replicate");
    local_replicas_record_master(replicas);
    for (int i = 0; i < replicas->count; i++) {
        struct local_replica *replica = &replicas->at[i];
        local_replica_use(replica);
        if (i != MASTER && i != stale) {
            local_replica_wait_for_master(replicas, replica);
            refresh(replica, replica->modules[model], replicas->at[MASTER].modules[model]);
        }
        local_replica_announce(replica, model);
    }
    local_replica_use(&replicas->at[MASTER]);
    range_end();
}

/* --- forward and backward, side by side --- */

static void *learn_in_thread(void *argument)
{
    struct replica_task *task = argument;
    local_replica_learn(task->replicas, task->replica, task->turn);
    return NULL;
}

/* The master's part is the calling thread's. */
static void learn_in_threads(struct data_parallel *parallel, int turn)
{
    struct local_replicas *replicas = &parallel->replicas;
    for (int i = MASTER + 1; i < replicas->count; i++) {
        struct replica_task *task = &parallel->tasks[i];
        *task =
            (struct replica_task){.replicas = replicas, .replica = &replicas->at[i], .turn = turn};
        int error = pthread_create(&task->thread, NULL, learn_in_thread, task);
        if (error)
            fatal("can't start a thread for device %d: %s", i, strerror(error));
    }
    local_replica_learn(replicas, &replicas->at[MASTER], turn);
    for (int i = MASTER + 1; i < replicas->count; i++)
        pthread_join(parallel->tasks[i].thread, NULL);
}

/* --- gather and reduce --- */

/* The master's tensor becomes the mean; the others keep theirs. */
static void reduce_to_master(struct local_replica *replica, struct tensor *tensor)
{
    CHECK_NCCL(ncclReduce(tensor_data(tensor), tensor_data(tensor), tensor_count(tensor), ncclFloat,
                          ncclAvg, MASTER, replica->communicator, replica->device->stream));
    tensor_wrote_in_place(tensor);
}

static void gather_and_reduce(struct local_replicas *replicas, int turn)
{
    range_begin(replicas->at[MASTER].modules[turn]->name, "reduce");
    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < replicas->count; i++) {
        reduce_to_master(&replicas->at[i], replicas->at[i].gradients[turn].all);
        reduce_to_master(&replicas->at[i], replicas->at[i].losses[turn]);
    }
    CHECK_NCCL(ncclGroupEnd());
    range_end();
}

static void take_turn(struct data_parallel *parallel, int turn, int stale)
{
    struct local_replicas *replicas = &parallel->replicas;
    for (int model = 0; model < replicas->kind->turns; model++)
        if (replicas->kind->runs[turn] & 1u << model)
            replicate(replicas, model, stale);
    learn_in_threads(parallel, turn);
    gather_and_reduce(replicas, turn);
    if (!scaler_agrees_to_step(replicas->scaler))
        return;
    range_begin(replicas->at[MASTER].modules[turn]->name, "step");
    scaler_divide(replicas->scaler, &replicas->at[MASTER].gradients[turn]);
    optimizer_step(&parallel->optimizers[turn]);
    range_end();
}

static bool data_parallel_iterate(void *self, struct training_job *job,
                                  const struct data_batch *batch, struct tensor **losses)
{
    struct data_parallel *parallel = self;
    struct local_replicas *replicas = &parallel->replicas;
    bool forget = fault_is(&job->fault, FAULT_DP_STALE_REPLICA) &&
                  job->iteration >= job->fault.iteration;
    local_replicas_scatter(replicas, batch);
    for (int turn = 0; turn < replicas->kind->turns; turn++) {
        take_turn(parallel, turn, forget ? job->fault.rank : -1);
        losses[turn] = replicas->at[MASTER].losses[turn];
    }
    local_replicas_end_batch(replicas);
    return true;
}

static void data_parallel_finish(void *self, struct training_job *job)
{
    struct local_replicas *replicas = &((struct data_parallel *)self)->replicas;
    replicas->kind->finish(&replicas->at[MASTER], job);
}

const struct trainee trainee_data_parallel = {
    .name = "cnn",
    .mode = "dp",
    .one_process = true,
    .losses = CNN_LOSSES,
    .rate = CNN_RATE,
    .open = data_parallel_open,
    .iterate = data_parallel_iterate,
    .finish = data_parallel_finish,
    .close = data_parallel_close,
};

const struct trainee trainee_data_parallel_gan = {
    .name = "gan",
    .mode = "dp",
    .one_process = true,
    .losses = GAN_LOSSES,
    .rate = GAN_RATE,
    .open = data_parallel_open,
    .iterate = data_parallel_iterate,
    .finish = data_parallel_finish,
    .close = data_parallel_close,
};
