/* local_replicas.h: the copies of the classifier that one process keeps, one on each of its devices, with their parts of
 * the batch (--mode dp, --mode mirrored). The first is the master: its device is the job's.
 *
 * CUDA's current device belongs to the thread: whoever works with a replica makes its device current first. */
#ifndef DDPTRAIN_LOCAL_REPLICAS_H
#define DDPTRAIN_LOCAL_REPLICAS_H

#include "trainer/gradients.h"
#include "trainer/train_cnn.h"

struct local_replica {
    int index;
    struct device *device, own_device;
    ncclComm_t communicator;
    struct cnn cnn;
    struct gradients gradients;
    int32_t *labels, *correct;      /* device memory */
    struct batch part;
    struct tensor *loss;            /* of its part, on its tape */
};

struct local_replicas {
    struct local_replica *at;
    int count;
    cudaEvent_t master_ready;       /* what the master's stream was given so far is done */
};

/* Equal models on the job's devices, and a communicator over all of them (ncclCommInitAll). */
void local_replicas_open(struct local_replicas *replicas, struct job *job);
void local_replicas_close(struct local_replicas *replicas);

/* Makes the replica's device current for this thread. */
void local_replica_use(const struct local_replica *replica);

/* Records what the master's stream was given so far; then, for each other replica: its stream waits for that. */
void local_replicas_record_master(struct local_replicas *replicas);
void local_replica_wait_for_master(const struct local_replicas *replicas, struct local_replica *replica);

/* Deals out the master's batch in equal parts. */
void local_replicas_scatter(struct local_replicas *replicas, const struct batch *batch);
/* Computes the loss and the gradients of its part. Replicas may do so side by side in threads of their own. */
void local_replica_learn(struct local_replica *replica);
/* Tells ddpcheck that the replicas' parameters are meant to be equal now (docs/hashing.md); to be called for each. */
void local_replica_announce(const struct local_replica *replica);
/* Ends the batch on all devices but the master's, which the job ends. */
void local_replicas_end_batch(struct local_replicas *replicas);

#endif
