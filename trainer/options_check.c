/* options_check.c: defaults that depend on the fault, and which options can't be combined. */
#include "trainer/options_check.h"

#include <string.h>

#include "trainer/faults.h"
#include "trainer/models/dcgan.h"
#include "trainer/modes/modes.h"

/* The only model that can make the mistake; NULL: both can. */
static const char *model_of_fault(enum fault_id fault)
{
    switch (fault) {
    case FAULT_INPLACE_ACTIVATION:
    case FAULT_UNEVEN_UPDATES:
    case FAULT_SHARED_COMM:
    case FAULT_COMM_ORDER:
        return "gan";
    case FAULT_PIPELINE_ORDER:
    case FAULT_ACCUM_MISMATCH:
    case FAULT_ACCUM_EVERY:
    case FAULT_UNUSED_PARAMS:
    case FAULT_FORWARD_TWICE:
        return "cnn";
    default:
        return NULL;
    }
}

static bool is_about_accumulation(enum fault_id fault)
{
    return fault == FAULT_ACCUM_MISMATCH || fault == FAULT_ACCUM_EVERY;
}

void options_choose_rest(struct train_options *options)
{
    const struct fault_kind *kind = options->fault.name ? fault_find(options->fault.name) : NULL;
    enum fault_id fault = kind ? kind->id : FAULT_NONE;
    const char *model = model_of_fault(fault);
    if (!options->mode)
        options->mode = mode_of_fault(fault);
    if (!options->model)
        options->model = model;
    if (!options->model)
        options->model = strcmp(options->mode, "ddp") == 0 ? "gan" : "cnn";
    if (options->accumulate == 0)
        options->accumulate = is_about_accumulation(fault) ? 4 : 1;
    if (!options->precision.amp && fault == FAULT_AMP_SKIP)
        options->precision.amp = "fp16";
    if (options->iterations == 0 && options->epochs == 0)
        options->iterations = 100;
}

static int check_fault(const struct train_options *options, struct error *err)
{
    if (!options->fault.name)
        return 0;
    const struct fault_kind *kind = fault_find(options->fault.name);
    if (!kind)
        return error_set(err, "--fault %s: no such fault (see --list-faults)", options->fault.name);
    const char *model = model_of_fault(kind->id);
    if (model && strcmp(options->model, model) != 0)
        return error_set(err, "--fault %s needs --model %s", options->fault.name, model);
    if (kind->id == FAULT_INPLACE_ACTIVATION && options->no_batch_norm)
        return error_set(err, "--fault %s needs batch norm", options->fault.name);
    if (kind->id == FAULT_AMP_SKIP && strcmp(options->precision.amp, "fp16") != 0)
        return error_set(err, "--fault %s needs --amp fp16", options->fault.name);
    if (is_about_accumulation(kind->id) && options->accumulate < 2)
        return error_set(err, "--fault %s needs --accumulate of at least 2", options->fault.name);
    if (kind->id == FAULT_P2P_CYCLE && !options->output.exchange_every)
        return error_set(err, "--fault %s needs --exchange-every N", options->fault.name);
    if (kind->id == FAULT_MORE_WORK && options->epochs)
        return error_set(err, "--fault %s needs --iterations instead of --epochs",
                         options->fault.name);
    if (kind->id == FAULT_COMM_ORDER && options->shared_communicator)
        return error_set(
            err, "--fault %s needs a communicator for each model: leave out --shared-communicator",
            options->fault.name);
    return 0;
}

static int check_passes(const struct train_options *options, struct error *err)
{
    if (options->two_passes && strcmp(options->model, "cnn") != 0)
        return error_set(err, "--two-passes: only --model cnn has an optional block");
    if (options->accumulate == 1)
        return 0;
    if (strcmp(options->model, "cnn") != 0)
        return error_set(
            err, "--accumulate: only --model cnn accumulates gradients over parts of a batch");
    if (options->batch % options->accumulate)
        return error_set(err, "--accumulate %d does not divide the batch of %d",
                         options->accumulate, options->batch);
    return 0;
}

static int check_precision(const struct train_options *options, struct error *err)
{
    if (!options->precision.amp)
        return 0;
    if (strcmp(options->precision.amp, "fp16") != 0 && strcmp(options->precision.amp, "bf16") != 0)
        return error_set(err, "--amp %s: expected fp16 or bf16", options->precision.amp);
    return 0;
}

int options_check(const struct train_options *options, struct error *err)
{
    bool gan = strcmp(options->model, "gan") == 0;
    if (!gan && strcmp(options->model, "cnn") != 0)
        return error_set(err, "--model %s: expected gan or cnn", options->model);
    if (!dcgan_can_make(options->image))
        return error_set(err, "--image %d: expected 8, 16, 32, 64, 128 or 256", options->image);
    if (strcmp(options->gradients.average, "avg") != 0 &&
        strcmp(options->gradients.average, "premulsum") != 0 &&
        strcmp(options->gradients.average, "divide") != 0)
        return error_set(err, "--average %s: expected avg, premulsum or divide",
                         options->gradients.average);
    if (strcmp(options->precision.math, "fp32") != 0 &&
        strcmp(options->precision.math, "tf32") != 0 &&
        strcmp(options->precision.math, "bf16") != 0)
        return error_set(err, "--math %s: expected fp32, tf32 or bf16", options->precision.math);
    if (!gan && (options->simultaneous || options->shared_communicator ||
                 options->discriminator_updates > 1))
        return error_set(err, "--simultaneous, --shared-communicator and --discriminator-updates "
                              "need --model gan, which has two models");
    if (options->simultaneous && options->discriminator_updates > 1)
        return error_set(err,
                         "--discriminator-updates: with --simultaneous each model is updated once");
    if (!gan && options->output.samples)
        return error_set(err, "--samples: only --model gan draws images");
    if (options->output.checkpoint_every && !options->output.checkpoint)
        return error_set(err, "--checkpoint-every needs --checkpoint FILE");
    if (check_passes(options, err) != 0)
        return -1;
    if (options->launch.elastic && options->launch.no_gang)
        return error_set(err,
                         "--elastic and --no-gang exclude each other: all ranks restart together");
    if (check_fault(options, err) != 0)
        return -1;
    if (check_precision(options, err) != 0)
        return -1;
    return mode_check(options, err);
}
