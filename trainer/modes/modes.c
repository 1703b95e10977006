/* modes.c: checks --mode against the other options. */
#include "trainer/modes/modes.h"

#include <string.h>

static const char *const modes[] = {"ddp", "dp", "mirrored", "pipeline"};

/* The faults of the modes but ddp. */
static const struct {
    enum fault_id fault;
    const char *mode;
} faults[] = {
    {FAULT_DP_STALE_REPLICA, "dp"},
    {FAULT_MIRRORED_NO_GROUP, "mirrored"},
    {FAULT_PIPELINE_ORDER, "pipeline"},
};

const char *mode_of_fault(enum fault_id id)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (faults[i].fault == id)
            return faults[i].mode;
    return "ddp";
}

bool mode_is_one_process(const char *mode)
{
    return strcmp(mode, "dp") == 0 || strcmp(mode, "mirrored") == 0;
}

static bool is_known_mode(const char *mode)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(mode, modes[i]) == 0)
            return true;
    return false;
}

/* An option that was given and that only a process for each device with its reducer knows, or NULL.
 */
static const char *option_of_ddp(const struct train_options *o)
{
    const struct {
        const char *name;
        bool given;
    } table[] = {
        {"--elastic", o->launch.elastic},
        {"--checkpoint", o->output.checkpoint},
        {"--resume", o->output.resume},
        {"--clip", o->gradients.clip > 0},
        {"--join", o->join},
        {"--catch-up", o->catch_up},
        {"--accumulate", o->accumulate > 1},
        {"--reduce-copies", o->gradients.reduce_copies},
        {"--two-passes", o->two_passes},
        {"--find-unused", o->gradients.find_unused},
        {"--static-graph", o->gradients.static_graph},
        {"--no-buffer-broadcast", o->gradients.keep_own_buffers},
        {"--simultaneous", o->simultaneous},
        {"--shared-communicator", o->shared_communicator},
        {"--discriminator-updates", o->discriminator_updates > 1},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].given)
            return table[i].name;
    return NULL;
}

int mode_check(const struct train_options *options, struct error *err)
{
    const char *mode = options->mode;
    if (!is_known_mode(mode))
        return error_set(err, "--mode %s: expected ddp, dp, mirrored or pipeline", mode);
    if (options->fault.name &&
        strcmp(mode_of_fault(fault_find(options->fault.name)->id), mode) != 0)
        return error_set(err, "--fault %s needs --mode %s", options->fault.name,
                         mode_of_fault(fault_find(options->fault.name)->id));
    if (strcmp(mode, "ddp") == 0)
        return 0;
    if (option_of_ddp(options))
        return error_set(err, "%s needs --mode ddp", option_of_ddp(options));
    if (options->fault.name && fault_find(options->fault.name)->id == FAULT_DP_STALE_REPLICA &&
        options->fault.rank == 0)
        return error_set(
            err,
            "--fault-rank 0: that is the master, whose model is the newest; choose another device");
    if (mode_is_one_process(mode) && options->launch.timeout_s > 0)
        return error_set(err, "--mode %s knows no --timeout", mode);
    if (strcmp(mode, "pipeline") == 0 && options->batch % options->micro_batches)
        return error_set(err, "--micro-batches %d does not divide the batch of %d",
                         options->micro_batches, options->batch);
    return 0;
}
