/* ddpcheck run: the command and its options. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/commands.h"
#include "cmd/options/options.h"
#include "cmd/run.h"
#include "cmd/run_tui.h"
#include "collector/trace_directory.h"

/* The process that runs the job while another one shows the TUI. */
static int run_apart(void *context, int ready)
{
    struct watched_run *run = context;
    run->ready_fd = ready;
    return run_program(run, run->argv);
}

static int run_with_tui(struct watched_run *run)
{
    struct error err;
    char directory[PATH_MAX];
    int status = directory_make(run->options.directory_name, directory, &err) < 0
                     ? -1
                     : run_under_tui(run_apart, run, directory, &err);
    return status < 0 ? command_fail(&err) : status;
}

int command_run(int argc, char **argv)
{
    struct watched_run run = {.options = {.directory_name = "ddpcheck-trace",
                                          .keep = keep_usual(),
                                          .error_exitcode = NO_STATUS,
                                          .fail_on = NO_STATUS,
                                          .emulate = NOT_EMULATED,
                                          .stacks = -1,
                                          .cuda = -1},
                              .socket = -1,
                              .ready_fd = -1};
    const struct option_entry entries[] = {
        {"emulate", 0, OPTION_NUMBER, "N",
         "no GPU needed: CUDA and NCCL emulated on the CPU, with N devices", &run.options.emulate},
        {"emulate-memory", 0, OPTION_TEXT, "SIZE",
         "memory of each emulated device, such as 16G (default: 8G)", &run.options.emulate_memory},
        {"output", 'o', OPTION_TEXT, "DIR", "trace directory (default: ddpcheck-trace)",
         &run.options.directory_name},
        {"group", 0, OPTION_FLAG, NULL, "let the user's group read the trace directory",
         &run.options.group},
        OPTION_KEEP(&run.options.keep),
        {"timeout", 0, OPTION_SECONDS, "S", "terminate the job after S seconds without progress",
         &run.options.timeout},
        {"on-finding", 0, OPTION_CHOICE, "warn|abort",
         "abort: terminate the job at the first certain error (default: warn)",
         &run.options.on_finding},
        {"hang-after", 0, OPTION_SECONDS, "S",
         "report a rank as missing after S seconds without progress (default 10)",
         &run.options.hang_after},
        {"hub", 0, OPTION_TEXT, "URL|auto",
         "join the job's hub; auto: the job's first host starts one (docs/jobs.md)",
         &run.options.hub},
        OPTION_METRICS(&run.options.metrics),
        CHOICE_ENTRIES(run.options.choice, true),
        {"stacks", 0, OPTION_CHOICE, "off|nccl|lines|all",
         "call stacks to record; nccl: of NCCL's calls and host waits, lines (default): also the "
         "line of each copy and kernel, all: whole stacks of everything",
         &run.options.stacks},
        {"cuda", 0, OPTION_CHOICE, "used|all|none",
         "kernels and copies to record (default: those of memory that NCCL uses)",
         &run.options.cuda},
        {"hash", 0, OPTION_FLAG, NULL,
         "hash what collectives send and leave on the GPU, count NaN and Inf: DC308, DC309, DC501 "
         "to DC503",
         &run.options.hash},
        {"timing", 0, OPTION_FLAG, NULL,
         "exact times of operations and kernels, by CUPTI: smaller losses are found, and kernels "
         "have names (docs/speed.md)",
         &run.options.timing},
        {"guard", 0, OPTION_FLAG, NULL,
         "refuse a collective that differs from what another rank of this host called in its "
         "place: the call returns ncclInvalidUsage, in PyTorch an exception (docs/usage.md)",
         &run.options.guard},
        {"plugin", 0, OPTION_FLAG, NULL,
         "for programs with NCCL linked in: NCCL loads the shim as its profiler plugin as well "
         "(docs/front-ends.md)",
         &run.options.plugin},
        {"fail-on", 0, OPTION_CHOICE, "error|warning|note",
         "exit with 1 if there was such a finding or a worse one, whatever the program's status; a "
         "job that hangs ends with --timeout or --on-finding abort",
         &run.options.fail_on},
        {"error-exitcode", 0, OPTION_NUMBER, "N",
         "exit with N instead of 1 (without --fail-on: if there were errors)",
         &run.options.error_exitcode},
        {"tui", 0, OPTION_FLAG, NULL,
         "show the terminal UI while the job runs; the program's output goes to DIR/output.log",
         &run.options.tui},
        {"quiet", 'q', OPTION_FLAG, NULL, "no findings and no summary on stderr",
         &run.options.quiet},
    };
    const struct command_options options = {
        .command = "run",
        .arguments = "-- PROGRAM [ARGUMENT...]",
        .summary = "Runs a program, records its NCCL and CUDA calls, and reports errors as "
                   "soon as they are known.",
        .details = "Exit status: the program's (128 + signal if it was killed; 127 if it is not "
                   "found, 126 if it can't be run), or that of --fail-on or --error-exitcode.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
        .stop_at_argument = true,
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (argc == 0)
        return options_usage_error(&options, "missing PROGRAM (try 'ddpcheck run -- ./train')");
    bool bad_devices = run.options.emulate == 0 || run.options.emulate > EMULATED_MAX;
    if (bad_devices || (run.options.error_exitcode != NO_STATUS &&
                        (run.options.error_exitcode < 1 || run.options.error_exitcode > 255)))
        return options_usage_error(&options, bad_devices ? "--emulate takes 1 to 256 devices"
                                                         : "--error-exitcode takes 1 to 255");
    if (run.options.emulate == NOT_EMULATED)
        run.options.emulate = 0;
    struct keep_limits limits;
    if (keep_parse(run.options.keep, &limits) < 0)
        return keep_usage_error(&options, run.options.keep);
    run.argv = argv;
    if (run.options.group)
        setenv("DDPCHECK_GROUP", "1", 1);
    return run.options.tui ? run_with_tui(&run) : run_program(&run, argv);
}
