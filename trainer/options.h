/* options.h: the command line of ddptrain. One table (options.c) parses it and prints --help. */
#ifndef DDPTRAIN_OPTIONS_H
#define DDPTRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

/* Ranks that ddptrain starts, for launcher.c. */
struct launch_options {
    int ranks; /* 0: not given */
    bool no_gang, elastic;
    int max_restarts;
    double timeout_s; /* 0: none */
};

/* Mixed precision, for job.c. */
struct precision_options {
    const char *amp; /* NULL: fp32 */
    const char *math;
    double loss_scale;
    int scale_growth;
    bool agree_overflow;
};

/* How gradients become the average, for job.c. */
struct gradient_options {
    double first_bucket_mb, bucket_mb;
    const char *average;
    double clip; /* 0: no clipping */
    bool reduce_copies;
    bool find_unused, static_graph, keep_own_buffers;
};

/* What is printed and saved, for train.c. */
struct output_options {
    int log_every;
    const char *samples;
    const char *checkpoint, *resume;
    int checkpoint_every, barrier_every, exchange_every;
};

/* The fault, for faults.c. */
struct fault_options {
    const char *name; /* NULL: none */
    int rank;         /* -1: the last */
    int iteration;
};

struct train_options {
    const char *model, *mode;
    int micro_batches;

    int iterations, epochs; /* 0: not given */
    int batch;
    int seed;
    int image, width, latent;
    double learning_rate; /* 0: the model's own */
    bool no_batch_norm;
    int dataset_size;

    struct launch_options launch;
    struct precision_options precision;
    struct gradient_options gradients;
    bool simultaneous, shared_communicator;
    int discriminator_updates;
    bool join, catch_up;
    int accumulate; /* micro-steps in an iteration; 0: not given */
    bool two_passes;
    bool generator_shortcut, inplace_clone, no_version_check;
    struct output_options output;
    struct fault_options fault;

    bool verbose;
    bool list_faults, tabs, help, version;
};

/* Fills in the defaults, then what the arguments say; strings point into argv. Returns 0, or -1
 * with a message for the user. */
int options_parse(struct train_options *options, int argc, char **argv, struct error *err);
void options_print_help(void);

#endif
