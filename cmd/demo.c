/* ddpcheck demo: records a job that hangs, on emulated GPUs, and shows what ddpcheck says of it. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/options/options.h"
#include "cmd/run_environment.h"

extern char **environ;

/* Runs this tool with the arguments. Returns its exit status, 128 + signal if it was killed, or -1
 * with err. */
static int run_tool(char *const argv[], struct error *err)
{
    pid_t child;
    int status, failure = posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ);
    if (failure)
        return error_set(err, "can't start ddpcheck: %s", strerror(failure));
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return error_set(err, "can't wait for ddpcheck: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int record_demo(const char *directory, struct error *err)
{
    char program[PATH_MAX];
    if (demo_path(program, err) < 0)
        return -1;
    char *const argv[] = {"ddpcheck",        "run", "--emulate", "4", "--timeout", "3", "--output",
                          (char *)directory, "--",  program,     NULL};
    printf("A training job on 4 emulated GPUs, in which rank 3 forgets a barrier. After 3 seconds\n"
           "without progress ddpcheck ends it:\n\n"
           "$ ddpcheck run --emulate 4 --timeout 3 -o %s -- %s\n",
           directory, program);
    fflush(stdout);
    return run_tool(argv, err);
}

static int show_demo(const char *directory, struct error *err)
{
    char *const argv[] = {"ddpcheck", "report", (char *)directory, NULL};
    printf("\n$ ddpcheck report %s\n", directory);
    fflush(stdout);
    return run_tool(argv, err);
}

int command_demo(int argc, char **argv)
{
    const char *directory = "ddpcheck-demo";
    const struct option_entry entries[] = {
        {"output", 'o', OPTION_TEXT, "DIR", "trace directory (default: ddpcheck-demo)", &directory},
    };
    const struct command_options options = {
        .command = "demo",
        .arguments = "",
        .summary = "Records a small job that hangs, on emulated GPUs, and shows the report. It "
                   "takes about 5 seconds and needs no GPU.",
        .details = "Exit status: 0 if the fault was found.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    struct error err;
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (argc > 0)
        return options_usage_error(&options, "'%s' is no option", argv[0]);
    if ((status = record_demo(directory, &err)) < 0)
        return command_fail(&err);
    if (status == STATUS_USAGE) {
        error_set(&err, "nothing was recorded; 'ddpcheck demo -o DIR' uses another directory");
        return command_fail(&err);
    }
    if ((status = show_demo(directory, &err)) < 0)
        return command_fail(&err);
    if (status != STATUS_FINDINGS) {
        error_set(&err, "the demo's fault was not found; 'ddpcheck doctor' checks this machine");
        return command_fail(&err);
    }
    printf("Next: 'ddpcheck tui %s' shows it in the terminal, 'ddpcheck explain DC201' explains "
           "it,\n      'ddpcheck run -- PROGRAM' watches your own program.\n",
           directory);
    return STATUS_CLEAN;
}
