/* options.c: the table of command-line options, parsing and --help. */
#include "trainer/options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/check.h"
#include "trainer/faults.h"
#include "trainer/options_check.h"

enum kind { HEADING, FLAG, INTEGER, NUMBER, TEXT };

struct option {
    enum kind kind;
    const char *name;
    const char *value; /* how the help calls it */
    size_t offset;     /* in struct train_options */
    double lowest;
    const char *help;
};

#define TO(field) offsetof(struct train_options, field)

static const struct option table[] = {
    {HEADING, "What to train", NULL, 0, 0, NULL},
    {TEXT, "model", "gan|cnn", TO(model), 0,
     "DCGAN on images (gan, the default) or a classifier (cnn)"},
    {TEXT, "mode", "NAME", TO(mode), 0,
     "how to use several devices: ddp, one process with a replica per device (default); dp, one "
     "process that copies its model to all devices in each iteration; mirrored, one process with a "
     "replica on each device; pipeline, one process per half of the model (gan: generator and "
     "discriminator)"},
    {INTEGER, "micro-batches", "N", TO(micro_batches), 1,
     "number of micro-batches per batch in the pipeline (4)"},
    {INTEGER, "iterations", "N", TO(iterations), 1,
     "stop after N iterations (100, if --epochs is not given)"},
    {INTEGER, "epochs", "N", TO(epochs), 1, "stop after N passes over the data set"},
    {INTEGER, "batch", "N", TO(batch), 1, "images per rank and iteration (8)"},
    {INTEGER, "seed", "N", TO(seed), 0, "seed of weights, data, noise and shuffling (1)"},
    {INTEGER, "image", "N", TO(image), 8, "height and width: 8, 16, 32, 64, 128 or 256 (32)"},
    {INTEGER, "width", "N", TO(width), 1, "channels of the layers next to the image (8)"},
    {INTEGER, "latent", "N", TO(latent), 1, "length of the generator's noise vector (32)"},
    {NUMBER, "learning-rate", "R", TO(learning_rate), 0,
     "learning rate of Adam (gan 0.002, cnn 0.001)"},
    {FLAG, "no-batch-norm", NULL, TO(no_batch_norm), 0,
     "no batch norm, so that N ranks compute the same as one"},

    {HEADING, "Data", NULL, 0, 0, NULL},
    {INTEGER, "dataset-size", "N", TO(dataset_size), 1,
     "number of generated images of shapes in an epoch (2048)"},

    {HEADING, "Ranks", NULL, 0, 0, NULL},
    {INTEGER, "ranks", "N", TO(launch.ranks), 1,
     "start N ranks on this machine (default: the rank that torchrun, mpirun or srun assigned, "
     "else a single rank); with --mode dp or mirrored: use N devices (all)"},
    {FLAG, "no-gang", NULL, TO(launch.no_gang), 0,
     "do not terminate the other ranks when one fails (they may hang)"},
    {FLAG, "elastic", NULL, TO(launch.elastic), 0,
     "when a rank fails, restart all ranks; they resume from --checkpoint FILE if it exists"},
    {INTEGER, "max-restarts", "N", TO(launch.max_restarts), 0,
     "with --elastic: give up when a rank fails after N restarts (3)"},
    {NUMBER, "timeout", "S", TO(launch.timeout_s), 0,
     "abort a rank when no collective completes for S seconds (off)"},

    {HEADING, "Mixed precision", NULL, 0, 0, NULL},
    {TEXT, "amp", "fp16|bf16", TO(precision.amp), 0,
     "run convolutions and linear layers in this format; parameters, their gradients and "
     "reductions stay fp32 (off)"},
    {TEXT, "math", "fp32|tf32|bf16", TO(precision.math), 0,
     "math mode of fp32 convolutions and linear layers: fp32 (default), or tf32 or bf16 on tensor "
     "cores, accumulated in fp32"},
    {NUMBER, "loss-scale", "S", TO(precision.loss_scale), 1,
     "initial loss scale of --amp fp16 (65536)"},
    {INTEGER, "scale-growth", "N", TO(precision.scale_growth), 1,
     "double the loss scale after N iterations without overflow (2000)"},
    {FLAG, "agree-overflow", NULL, TO(precision.agree_overflow), 0,
     "with --fault amp-skip: let the ranks agree on the overflow, as they do without the fault"},

    {HEADING, "Gradients", NULL, 0, 0, NULL},
    {NUMBER, "first-bucket-mb", "MB", TO(gradients.first_bucket_mb), 0,
     "size limit of the first bucket (1)"},
    {NUMBER, "bucket-mb", "MB", TO(gradients.bucket_mb), 0,
     "size limit of the other buckets (25); small models have several only with a smaller limit"},
    {TEXT, "average", "avg|premulsum|divide", TO(gradients.average), 0,
     "how gradients are averaged: ncclAvg (default), PreMulSum, or divided before the sum"},
    {FLAG, "reduce-copies", NULL, TO(gradients.reduce_copies), 0,
     "reduce a copy of each bucket, so that gradients keep their values until the averages are "
     "complete"},
    {INTEGER, "discriminator-updates", "N", TO(discriminator_updates), 1,
     "updates of the discriminator in each iteration (gan, 1)"},
    {FLAG, "simultaneous", NULL, TO(simultaneous), 0,
     "run both backward passes before both steps (gan)"},
    {FLAG, "shared-communicator", NULL, TO(shared_communicator), 0,
     "use one communicator for both models (gan)"},
    {NUMBER, "clip", "L", TO(gradients.clip), 0, "clamp reduced gradients to -L..L (off)"},
    {FLAG, "join", NULL, TO(join), 0,
     "ranks that run out of data shadow the collectives of the others until all are done"},
    {FLAG, "catch-up", NULL, TO(catch_up), 0, "a rank that skips a batch reduces zeros instead"},
    {INTEGER, "accumulate", "N", TO(accumulate), 1,
     "split a batch into N parts, accumulate their gradients and reduce once (cnn, 1)"},
    {FLAG, "two-passes", NULL, TO(two_passes), 0,
     "train on the sum of the losses with and without a residual block (cnn)"},
    {FLAG, "find-unused", NULL, TO(gradients.find_unused), 0,
     "do not wait for gradients of parameters that a forward pass does not use"},
    {FLAG, "static-graph", NULL, TO(gradients.static_graph), 0,
     "every iteration uses the same parameters as the first"},
    {FLAG, "no-buffer-broadcast", NULL, TO(gradients.keep_own_buffers), 0,
     "each rank keeps its own batch norm statistics"},
    {FLAG, "generator-shortcut", NULL, TO(generator_shortcut), 0,
     "add a shortcut with a leaky ReLU around the generator's last batch norm"},
    {FLAG, "inplace-clone", NULL, TO(inplace_clone), 0,
     "compute that leaky ReLU in place, on a clone (correct)"},
    {FLAG, "no-version-check", NULL, TO(no_version_check), 0,
     "let backward use saved tensors that were modified in place"},

    {HEADING, "Output", NULL, 0, 0, NULL},
    {INTEGER, "log-every", "N", TO(output.log_every), 1,
     "print the losses, averaged over the ranks, every N iterations (10)"},
    {TEXT, "samples", "FILE", TO(output.samples), 0,
     "write a PNG grid of generated images at the end (gan)"},
    {TEXT, "checkpoint", "FILE", TO(output.checkpoint), 0,
     "save the training state at the end, and every --checkpoint-every iterations"},
    {INTEGER, "checkpoint-every", "N", TO(output.checkpoint_every), 1,
     "also save after every N iterations"},
    {TEXT, "resume", "FILE", TO(output.resume), 0, "resume from a saved state"},
    {INTEGER, "barrier-every", "N", TO(output.barrier_every), 1,
     "barrier of all ranks after every N iterations"},
    {INTEGER, "exchange-every", "N", TO(output.exchange_every), 1,
     "send the losses to the next rank after every N iterations"},

    {HEADING, "Faults", NULL, 0, 0, NULL},
    {TEXT, "fault", "NAME", TO(fault.name), 0, "inject the fault NAME (see --list-faults)"},
    {INTEGER, "fault-rank", "R", TO(fault.rank), 0, "the rank with the fault (the last)"},
    {INTEGER, "fault-iteration", "N", TO(fault.iteration), 0,
     "the iteration of the fault, counted from 0 (5)"},
    {FLAG, "verbose", NULL, TO(verbose), 0, "each rank prints its launcher, rank and device"},
    {FLAG, "list-faults", NULL, TO(list_faults), 0, "describe the faults and exit"},
    {FLAG, "tabs", NULL, TO(tabs), 0, "--list-faults as tab-separated values"},
    {FLAG, "help", NULL, TO(help), 0, "print this help and exit"},
    {FLAG, "version", NULL, TO(version), 0, "print the version and exit"},
};

static const struct train_options defaults = {
    .batch = 8,
    .micro_batches = 4,
    .seed = 1,
    .image = 32,
    .width = 8,
    .latent = 32,
    .dataset_size = 2048,
    .gradients.first_bucket_mb = 1,
    .gradients.bucket_mb = 25,
    .gradients.average = "avg",
    .precision.math = "fp32",
    .output.log_every = 10,
    .fault.rank = -1,
    .fault.iteration = 5,
    .launch.max_restarts = 3,
    .discriminator_updates = 1,
    .precision.loss_scale = 65536,
    .precision.scale_growth = 2000,
};

static const struct option *find_option(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind != HEADING && strncmp(table[i].name, name, length) == 0 &&
            table[i].name[length] == '\0')
            return &table[i];
    return NULL;
}

static int store_value(struct train_options *options, const struct option *option,
                       const char *value, struct error *err)
{
    char *field = (char *)options + option->offset, *end;
    errno = 0;
    if (option->kind == TEXT) {
        *(const char **)field = value;
        return 0;
    }
    double number = option->kind == INTEGER ? (double)strtol(value, &end, 10) : strtod(value, &end);
    if (errno || end == value || *end || !isfinite(number) || number < option->lowest ||
        number > 2e9)
        return error_set(err, "--%s %s: expected %s of at least %g", option->name, value,
                         option->kind == INTEGER ? "a whole number" : "a number", option->lowest);
    if (option->kind == INTEGER)
        *(int *)field = (int)number;
    else
        *(double *)field = number;
    return 0;
}

/* Takes the option at *index and its value, if it has one. */
static int parse_one(struct train_options *options, int argc, char **argv, int *index,
                     struct error *err)
{
    const char *argument = argv[*index];
    if (strncmp(argument, "--", 2) != 0)
        return error_set(err, "unexpected argument '%s': options begin with -- (see --help)",
                         argument);
    const char *name = argument + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *option = find_option(name, length);
    if (!option)
        return error_set(err, "unknown option '--%.*s' (see --help)", (int)length, name);
    if (option->kind == FLAG) {
        if (equals)
            return error_set(err, "--%s takes no value", option->name);
        *(bool *)((char *)options + option->offset) = true;
        return 0;
    }
    const char *value = equals ? equals + 1 : NULL;
    if (!value && *index + 1 < argc)
        value = argv[++*index];
    if (!value)
        return error_set(err, "--%s needs a value: %s", option->name, option->value);
    return store_value(options, option, value, err);
}

int options_parse(struct train_options *options, int argc, char **argv, struct error *err)
{
    *options = defaults;
    for (int i = 1; i < argc; i++)
        if (parse_one(options, argc, argv, &i, err) != 0)
            return -1;
    options_choose_rest(options);
    return options_check(options, err);
}

void options_print_help(void)
{
    enum { COLUMN = 28 };
    printf("Usage: ddptrain [OPTION]...\n"
           "Trains a small model on several GPUs with data parallelism, as PyTorch's\n"
           "DistributedDataParallel does, and injects faults (--fault). Losses go to stdout,\n"
           "messages and progress to stderr.\n\n"
           "  ddptrain --ranks 4 --samples samples.png     a DCGAN on 4 GPUs; ddptrain starts the "
           "ranks\n"
           "  ddptrain --ranks 4 --fault partial-barrier   a job that hangs\n"
           "  ddptrain --mode pipeline --ranks 2           the model's halves on two GPUs\n"
           "  torchrun --no-python --nproc_per_node 4 ddptrain --model cnn\n"
           "  mpirun -n 4 ddptrain --model cnn             also srun; on several hosts set "
           "MASTER_ADDR\n"
           "                                               to the address of rank 0\n");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct option *option = &table[i];
        char left[64];
        if (option->kind == HEADING) {
            printf("\n%s:\n", option->name);
            continue;
        }
        snprintf(left, sizeof left, "--%s %s", option->name, option->value ? option->value : "");
        printf("  %-*s ", COLUMN - 3, left);
        print_wrapped(stdout, option->help, COLUMN, HELP_WIDTH);
    }
    printf("\nNames of faults; --list-faults describes them:\n");
    faults_print_names(stdout);
    printf("\nExit status: 0 success, 1 error while training, 2 usage error or unreadable input; "
           "with\n"
           "--ranks that of the rank that failed first (128 + signal number if it was killed).\n");
}
