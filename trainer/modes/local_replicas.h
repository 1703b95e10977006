/* local_replicas.h: the copies of the models that one process keeps, one set on each of its
 * devices, with their parts of the batch (--mode dp, --mode mirrored). The first is the master: its
 * device is the job's.
 *
 * An iteration has a turn for each model: forward and backward on all devices, one reduction of the
 * model's gradients, one step. The classifier has one turn; the GAN has two, first the
 * discriminator's, then the generator's, which is judged by the discriminator as it is by then.
 *
 * CUDA's current device belongs to the thread: code that works with a replica makes its device
 * current first. */
#ifndef DDPTRAIN_LOCAL_REPLICAS_H
#define DDPTRAIN_LOCAL_REPLICAS_H

#include "trainer/module.h"
#include "trainer/job.h"

enum { LOCAL_MODELS = TRAINEE_MAX_LOSSES };

struct local_replica {
    int index;
    struct device *device, own_device;
    ncclComm_t communicator;
    void *models; /* of the kind */
    struct module *modules[LOCAL_MODELS];
    struct gradients gradients[LOCAL_MODELS];
    struct tensor *losses[LOCAL_MODELS]; /* of its part, on its tape */
    struct data_batch part;
    int32_t *labels; /* device memory */
};

/* What is replicated. */
struct local_kind {
    const char *name;            /* as in --model */
    int turns;                   /* turn i trains model i */
    unsigned runs[LOCAL_MODELS]; /* the models whose forward passes begin in turn i, as bits */
    /* Makes the models on the replica's device, which is current, and fills in `models` and
     * `modules`. */
    void (*open)(struct local_replica *replica, struct training_job *job);
    void (*close)(struct local_replica *replica);
    /* Computes losses[turn] and the gradients of model `turn`, which are zero before. */
    void (*learn)(struct local_replica *replica, int turn);
    /* Prints how good the master is. */
    void (*finish)(struct local_replica *master, struct training_job *job);
    struct adam_settings (*adam)(const struct training_job *job);
};

extern const struct local_kind local_classifier, local_gan;

struct local_replicas {
    const struct local_kind *kind;
    struct scaler *scaler; /* the job's, over all devices */
    struct local_replica *at;
    int count;
    cudaEvent_t master_ready; /* what the master's stream was given so far is done */
};

/* Equal models on the job's devices, of the kind that the job trains, and a communicator over all
 * (ncclCommInitAll). */
void local_replicas_open(struct local_replicas *replicas, struct training_job *job);
void local_replicas_close(struct local_replicas *replicas);

/* Makes the replica's device current for this thread. */
void local_replica_use(const struct local_replica *replica);

/* Records what the master's stream was given so far; then, for each other replica: its stream waits
 * for that. */
void local_replicas_record_master(struct local_replicas *replicas);
void local_replica_wait_for_master(const struct local_replicas *replicas,
                                   struct local_replica *replica);

/* Deals out the master's batch in equal parts. */
void local_replicas_scatter(struct local_replicas *replicas, const struct data_batch *batch);
/* Computes the turn's loss and gradients on its part. Replicas may do so side by side in threads of
 * their own. */
void local_replica_learn(const struct local_replicas *replicas, struct local_replica *replica,
                         int turn);
/* For learn(): backward from a loss; ends the process with a message if that can't be. */
void local_replica_backward(struct local_replica *replica, int turn, struct tensor *loss);
/* Marks for ddpcheck that the replicas' parameters of a model are meant to be equal now
 * (docs/hashing.md); to be called for each. */
void local_replica_announce(const struct local_replica *replica, int model);
/* Ends the batch on all devices but the master's, which the job ends. */
void local_replicas_end_batch(struct local_replicas *replicas);

#endif
