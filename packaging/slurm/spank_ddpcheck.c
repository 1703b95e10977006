/* spank_ddpcheck.c: a SPANK plugin, by which Slurm has jobs watched: `srun --ddpcheck`, or all of
 * them (https://slurm.schedmd.com/spank.html). A line of plugstack.conf loads it:
 *
 *     optional spank_ddpcheck.so prefix=/opt/ddpcheck trace=/tmp default=on
 *
 * It sets two variables of each task, as docs/operate/task-prolog.sh does, and nothing else. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

SPANK_PLUGIN(ddpcheck, 1)

enum { TEXT_BYTES = 4096, OPTIONAL_ARGUMENT = 2 };

/* What the line of plugstack.conf says; the option replaces is_on. */
static struct {
    const char *prefix, *trace;
    bool is_on;
} settings = {"/opt/ddpcheck", "/tmp", false};

static int take_option(int value, const char *argument, int is_remote)
{
    (void)value, (void)is_remote;
    if (argument && strcmp(argument, "on") != 0 && strcmp(argument, "off") != 0) {
        slurm_error("--ddpcheck takes on or off, not '%s'", argument);
        return -1;
    }
    settings.is_on = !argument || !strcmp(argument, "on");
    return 0;
}

static void take_setting(const char *argument)
{
    if (!strncmp(argument, "prefix=", strlen("prefix=")))
        settings.prefix = strdup(argument + strlen("prefix="));
    else if (!strncmp(argument, "trace=", strlen("trace=")))
        settings.trace = strdup(argument + strlen("trace="));
    else if (!strncmp(argument, "default=", strlen("default=")))
        settings.is_on = !strcmp(argument, "default=on");
    else
        slurm_error("spank_ddpcheck: no setting '%s': prefix=, trace= and default= are possible",
                    argument);
}

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
    struct spank_option option = {.name = "ddpcheck",
                                  .arginfo = "on|off",
                                  .usage = "watch the job with ddpcheck",
                                  .has_arg = OPTIONAL_ARGUMENT,
                                  .cb = take_option};
    for (int i = 0; i < count; i++)
        take_setting(arguments[i]);
    return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* In each task, as its user, before its program. What the user has set stays. */
int slurm_spank_task_init(spank_t spank, int count, char **arguments)
{
    char preload[TEXT_BYTES], before[TEXT_BYTES] = "", trace[TEXT_BYTES], job[64] = "",
                              step[64] = "";
    (void)count, (void)arguments;
    if (!settings.is_on)
        return 0;
    spank_getenv(spank, "SLURM_JOB_ID", job, sizeof job);
    spank_getenv(spank, "SLURM_STEP_ID", step, sizeof step);
    spank_getenv(spank, "LD_PRELOAD", before, sizeof before);
    int bytes = snprintf(preload, sizeof preload, "%s/lib/libddpcheck.so%s%s", settings.prefix,
                         *before ? ":" : "", before);
    snprintf(trace, sizeof trace, "%s/ddpcheck-%s.%s", settings.trace, job, *step ? step : "batch");
    if (bytes < (int)sizeof preload)
        spank_setenv(spank, "LD_PRELOAD", preload, 1);
    spank_setenv(spank, "DDPCHECK_DIR", trace, 0);
    return 0;
}
