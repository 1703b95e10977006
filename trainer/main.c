/* main.c: ddptrain, a data-parallel training job that shows how DistributedDataParallel works and
 * what its typical mistakes look like. */
#include <stdio.h>
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/job.h"
#include "trainer/launcher.h"
#include "trainer/modes/modes.h"

static int train_one_rank(const struct train_options *options,
                          const struct environment *environment)
{
    static struct training_job job; /* static: some kilobytes, and pointed to from everywhere */
    fatal_name_rank(environment->rank);
    job_open(&job, options, environment);
    int status = job_train(&job);
    job_close(&job);
    return status;
}

static int report_usage_error(const struct error *err)
{
    fprintf(stderr, "ddptrain: %s\n", err->text);
    return 2;
}

int main(int argc, char **argv)
{
    struct train_options options;
    struct environment environment;
    struct error err = {0};
    if (options_parse(&options, argc, argv, &err) != 0)
        return report_usage_error(&err);
    if (options.help)
        options_print_help();
    if (options.list_faults)
        faults_print(stdout, options.tabs);
    if (options.version)
        puts("ddptrain " DDPCHECK_VERSION);
    if (options.help || options.list_faults || options.version)
        return 0;

    if (environment_read(&environment, options.launch.ranks > 0, &err) != 0)
        return report_usage_error(&err);
    if (mode_is_one_process(options.mode))
        return train_one_rank(&options, &environment);
    if (options.launch.ranks > 0 && !environment.launcher && options.launch.ranks > 1)
        return launcher_run(&options, argv);
    if (options.launch.ranks > 0 && environment.launcher &&
        options.launch.ranks != environment.size)
        return report_usage_error(&(struct error){
            "--ranks and WORLD_SIZE in the environment differ: leave one of them out"});
    return train_one_rank(&options, &environment);
}
