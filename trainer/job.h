/* job.h: what a rank has while it trains, and the table of what can be trained.
 *
 * job.c sets it up (device, communicators, data) and takes it down; train.c runs the loop;
 * train_gan.c and train_cnn.c say what an iteration is. */
#ifndef DDPTRAIN_JOB_H
#define DDPTRAIN_JOB_H

#include "trainer/checkpoint.h"
#include "trainer/communicator.h"
#include "trainer/data/loader.h"
#include "trainer/distributed.h"
#include "trainer/environment.h"
#include "trainer/faults.h"
#include "trainer/options.h"
#include "trainer/scaler.h"

struct training_job;

enum { TRAINEE_MAX_LOSSES = 2, TRAINEE_MAX_SECTIONS = 2 };

/* One kind of training. `self` is what open() returned. */
struct trainee {
    const char *name; /* as in --model */
    const char *mode; /* as in --mode */
    int ranks;        /* how many it takes; 0: any number */
    bool one_process; /* which drives all devices: --ranks says how many */
    bool same_batch;  /* all ranks read the same images: there are no shards */
    const char *losses[TRAINEE_MAX_LOSSES + 1]; /* their names, ended by NULL */
    float rate;                                 /* Adam's, if --learning-rate is not given */

    void *(*open)(struct training_job *job);
    /* Trains on one batch; losses[i] get tensors of one number on the tape. Returns false if the
     * batch was lost. */
    bool (*iterate)(void *self, struct training_job *job, const struct data_batch *batch,
                    struct tensor **losses);
    /* The rest but close() is only for --mode ddp, and may be NULL.
     * Takes part in the collectives of one iteration without data. */
    void (*shadow)(void *self, struct training_job *job);
    /* Takes over root's state, collectively. */
    void (*take_state_of)(void *self, int root);
    /* After training, on rank 0. */
    void (*finish)(void *self, struct training_job *job);
    /* What a checkpoint holds; returns how many sections. */
    int (*sections)(void *self, struct checkpoint_section *sections);
    void (*close)(void *self);
};

extern const struct trainee trainee_gan, trainee_cnn;

struct training_job {
    const struct train_options *options;
    struct environment environment;
    struct fault fault;
    const struct trainee *trainee;
    struct device device;
    struct watchdog *watchdog;   /* NULL without --timeout */
    struct communicator control; /* barriers, averages, agreement */
    struct scaler scaler;
    struct dataset dataset;
    struct sampler sampler;
    struct loader loader;
    int devices;   /* of all ranks */
    int images;    /* of all ranks in an iteration */
    int iteration; /* the current one, from 0 */
};

/* Sets up everything, blocking until all ranks have come. Wrong input ends the process with
 * status 2. */
void job_open(struct training_job *job, const struct train_options *options,
              const struct environment *environment);
void job_close(struct training_job *job);

struct distributed_settings job_distributed(const struct training_job *job);
struct adam_settings job_adam(const struct training_job *job, float beta1);
/* The fault that strikes here and now. */
enum fault_id job_fault_now(const struct training_job *job);
/* True if it is this one. */
bool job_fault_strikes(const struct training_job *job, enum fault_id id);
/* On the rank of this fault the host is busy for a while, in each iteration. */
void job_stall_if(const struct training_job *job, enum fault_id id);

/* train.c: trains to the end. Returns the process's exit status. */
int job_train(struct training_job *job);

#endif
