/* ddpcheck run: the command and its options. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/commands.h"
#include "cmd/options/keep_option.h"
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
    int status = directory_make(run->directory_name, directory, &err) < 0
                     ? -1
                     : run_under_tui(run_apart, run, directory, &err);
    return status < 0 ? command_fail(&err) : status;
}

int command_run(int argc, char **argv)
{
    struct watched_run run = {.directory_name = "ddpcheck-trace",
                              .keep = keep_usual(),
                              .error_exitcode = NO_STATUS,
                              .emulate = NOT_EMULATED,
                              .stacks = -1,
                              .cuda = -1,
                              .socket = -1,
                              .ready_fd = -1};
    const struct option_entry entries[] = {
        {"emulate", 0, OPTION_NUMBER, "N",
         "no GPU needed: CUDA and NCCL emulated on the CPU, with N devices", &run.emulate},
        {"emulate-memory", 0, OPTION_TEXT, "SIZE",
         "memory of each emulated device, such as 16G (default: 8G)", &run.emulate_memory},
        {"output", 'o', OPTION_TEXT, "DIR", "trace directory (default: ddpcheck-trace)",
         &run.directory_name},
        {"group", 0, OPTION_FLAG, NULL, "let the user's group read the trace directory",
         &run.group},
        OPTION_KEEP(&run.keep),
        {"timeout", 0, OPTION_SECONDS, "S", "terminate the job after S seconds without progress",
         &run.timeout},
        {"on-finding", 0, OPTION_CHOICE, "warn|abort",
         "abort: terminate the job at the first certain error (default: warn)", &run.on_finding},
        {"hang-after", 0, OPTION_SECONDS, "S",
         "report a rank as missing after S seconds without progress (default 10)", &run.hang_after},
        {"hub", 0, OPTION_TEXT, "URL|auto",
         "join the job's hub; auto: the job's first host starts one (docs/jobs.md)", &run.hub},
        CHOICE_ENTRIES(run.choice, true),
        {"stacks", 0, OPTION_CHOICE, "off|nccl|lines|all",
         "call stacks to record; nccl: of NCCL's calls and host waits, lines (default): also the "
         "line of each copy and kernel, all: whole stacks of everything",
         &run.stacks},
        {"cuda", 0, OPTION_CHOICE, "used|all|none",
         "kernels and copies to record (default: those of memory that NCCL uses)", &run.cuda},
        {"hash", 0, OPTION_FLAG, NULL,
         "hash what collectives send and leave on the GPU, count NaN and Inf: DC308, DC309, DC501 "
         "to DC503",
         &run.hash},
        {"timing", 0, OPTION_FLAG, NULL,
         "exact times of operations and kernels, by CUPTI: DC601 and DC604 to DC608 as warnings, "
         "with kernels by name (docs/speed.md)",
         &run.timing},
        {"plugin", 0, OPTION_FLAG, NULL,
         "for programs with NCCL linked in: NCCL loads the shim as its profiler plugin as well "
         "(docs/front-ends.md)",
         &run.plugin},
        {"error-exitcode", 0, OPTION_NUMBER, "N",
         "exit with N if there were errors, whatever the program's status", &run.error_exitcode},
        {"tui", 0, OPTION_FLAG, NULL,
         "show the terminal UI while the job runs; the program's output goes to DIR/output.log",
         &run.tui},
        {"quiet", 'q', OPTION_FLAG, NULL, "no findings and no summary on stderr", &run.quiet},
    };
    const struct command_options options = {
        .command = "run",
        .arguments = "-- PROGRAM [ARGUMENT...]",
        .summary = "Runs a program, records its NCCL and CUDA calls, and reports errors as "
                   "soon as they are known.",
        .details = "Exit status: the program's (128 + signal if it was killed; 127 if it is not "
                   "found, 126 if it can't be run).\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
        .stop_at_argument = true,
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (argc == 0)
        return options_usage_error(&options, "missing PROGRAM (try 'ddpcheck run -- ./train')");
    bool bad_devices = run.emulate == 0 || run.emulate > EMULATED_MAX;
    if (bad_devices || (run.error_exitcode != NO_STATUS && run.error_exitcode > 255))
        return options_usage_error(&options, bad_devices ? "--emulate takes 1 to 256 devices"
                                                         : "--error-exitcode is at most 255");
    if (run.emulate == NOT_EMULATED)
        run.emulate = 0;
    struct keep_limits limits;
    if (keep_parse(run.keep, &limits) < 0)
        return keep_usage_error(&options, run.keep);
    run.argv = argv;
    if (run.group)
        setenv("DDPCHECK_GROUP", "1", 1);
    return run.tui ? run_with_tui(&run) : run_program(&run, argv);
}
