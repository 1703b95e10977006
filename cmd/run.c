/* run.c: runs a program under the shim, with a collector beside it, and says what is found as it is
 * found. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/options/choice.h"
#include "lib/base/clock.h"
#include "lib/base/descriptors.h"
#include "lib/base/process_file.h"
#include "cmd/commands.h"
#include "cmd/job.h"
#include "cmd/run.h"
#include "cmd/run_collector.h"
#include "cmd/run_environment.h"
#include "cmd/run_failed.h"
#include "cmd/run_hub.h"
#include "cmd/run_output.h"
#include "cmd/serve/serve_loop.h"
#include "collector/collector.h"
#include "collector/collector_notify.h"
#include "collector/trace_directory.h"

static const double kill_after_s = 5;     /* between SIGTERM and SIGKILL */
static const double killed_within_s = 1;  /* for the kernel to end what was killed */
static const double judge_patience_s = 3; /* for the collector, before the job is ended */
enum { RUN_DESCRIPTORS = 6 };             /* socket, signals, output, the job's start */
static const double left_said_s = 2;      /* after that it is said what the job has left */
enum { LEFT_BYTES = 160, LOOK_MS = 500 }; /* the longest between two looks at the time */
static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/* The collector and the hub end after the job: what its end shows is for them to see. */
static void spare(const struct watched_run *run, pid_t spared[JOB_SPARED])
{
    spared[0] = run->collector;
    spared[1] = run_hub_pid(run->joined);
    spared[2] = run->job.server;
}

static int signal_job(const struct watched_run *run, int signal_number)
{
    pid_t spared[JOB_SPARED];
    spare(run, spared);
    return job_signal_all(&run->job, spared, signal_number);
}

/* Ends the job as a user would: asks first, kills what does not listen. */
static void end_job(struct watched_run *run, const char *why)
{
    bool nothing_left = run->job.ended && !signal_job(run, 0);
    if (run->ending_since_ns || nothing_left)
        return;
    if (*why)
        fprintf(stderr, "ddpcheck: %s: ending the job\n", why);
    run->ending_since_ns = monotonic_now_ns();
    signal_job(run, SIGTERM);
    signal_job(run, SIGCONT);
}

/* What waits is judged first, and where the ranks stand is recorded: it can't be seen afterwards.
 */
static void judge_first(struct watched_run *run, int signal_number, uint64_t silence_ns)
{
    char line[64];
    int bytes = snprintf(line, sizeof line, "ending %d %" PRIu64 "\n", signal_number, silence_ns);
    run->held_signal = signal_number;
    run->judging_since_ns = monotonic_now_ns();
    if (run->shared || run->socket < 0 || send(run->socket, line, bytes, MSG_NOSIGNAL) != bytes)
        run->judged = true;
}

/* The collector has judged, or is too slow: now the job is ended. */
static void end_judged(struct watched_run *run)
{
    bool late = (double)(monotonic_now_ns() - run->judging_since_ns) / 1e9 > judge_patience_s;
    if (!run->judging_since_ns || (!run->judged && !late))
        return;
    run->judging_since_ns = 0;
    if (run->held_signal)
        job_forward(&run->job, run->held_signal);
    else
        end_job(run, "");
}

/* Since the job was asked to end. */
static double ending_seconds(const struct watched_run *run)
{
    return (double)(monotonic_now_ns() - run->ending_since_ns) / 1e9;
}

/* What does not listen: programs that handle SIGTERM go on, and a handler in Python never runs
 * while the rank is in a call of NCCL. Forked meanwhile, it is killed again. */
static void kill_job(struct watched_run *run)
{
    int count = signal_job(run, SIGKILL);
    if (!run->killed && count > 0)
        fprintf(stderr,
                "ddpcheck: %d %s not exited %g s after SIGTERM: killed by ddpcheck (SIGKILL)\n",
                count, count == 1 ? "process has" : "processes have", kill_after_s);
    run->killed = true;
}

/* The collector is stopped, or waits for storage: it can't say whether the job makes progress. */
static bool is_collector_held(const struct watched_run *run, char *state)
{
    char text[1024];
    const char *name_end = run->collector > 0 ? process_stat_read(run->collector, text, sizeof text)
                                              : NULL;
    return name_end && sscanf(name_end + 1, " %c", state) == 1 && strchr("TtD", *state);
}

/* The job's silence counts only while it could have been heard: not while this process was stopped
 * (Ctrl-Z, a scheduler that suspends the job), nor while the collector is. */
static void skip_unheard(struct watched_run *run, uint64_t now_ns)
{
    char state;
    struct job_silence *silence = &run->silence;
    bool is_held = is_collector_held(run, &state);
    uint64_t passed_ns = now_ns - silence->looked_ns, silent_ns = now_ns - silence->since_ns;
    uint64_t heard_ns = is_held ? 0 : MIN(passed_ns, LOOK_MS * UINT64_C(1000000));
    silence->looked_ns = now_ns;
    silence->since_ns += MIN(silent_ns, passed_ns - heard_ns);
    silence->held_ns = is_held ? silence->held_ns + passed_ns : 0;
    if ((double)silence->held_ns / 1e9 <= run->options.timeout || silence->said_held)
        return;
    fprintf(stderr,
            "ddpcheck: the collector, process %d, %s: whether the job makes progress is not known, "
            "and --timeout does not end it\n",
            (int)run->collector, state == 'D' ? "waits for storage" : "is stopped");
    silence->said_held = true;
}

static void check_time(struct watched_run *run)
{
    uint64_t now_ns = monotonic_now_ns();
    if (run->options.timeout > 0)
        skip_unheard(run, now_ns);
    if (run->ends_for_finding)
        end_job(run, "--on-finding abort");
    if (run->options.timeout > 0 &&
        (double)(now_ns - run->silence.since_ns) / 1e9 > run->options.timeout) {
        if (!run->timed_out)
            fprintf(stderr, "ddpcheck: no progress for %g s: ending the job\n",
                    run->options.timeout);
        if (!run->timed_out && !run->judging_since_ns)
            judge_first(run, 0, now_ns - run->silence.since_ns);
        run->timed_out = true;
    }
    end_judged(run);
    if (run->ending_since_ns && ending_seconds(run) > kill_after_s)
        kill_job(run);
}

static bool ends_jobs(int signal_number)
{
    return signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP ||
           signal_number == SIGQUIT;
}

/* A user who sends it twice does not want to wait. */
static void pass_signal(struct watched_run *run, int signal_number)
{
    if (run->job.ended && ends_jobs(signal_number))
        end_job(run, ""); /* what it has left behind */
    else if (ends_jobs(signal_number) && !run->judging_since_ns && !run->judged)
        judge_first(run, signal_number, 0);
    else
        job_forward(&run->job, signal_number);
}

static void take_signals(struct watched_run *run, int signals)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            pass_signal(run, (int)info.ssi_signo);
    job_reap(&run->job, run->socket, &run->collector, &run->collector_status);
}

/* The job is being ended, and what the program started still runs: it has as long as the program
 * itself, since it may save its state. */
static bool is_left_ending(const struct watched_run *run)
{
    return run->ending_since_ns && ending_seconds(run) < kill_after_s + killed_within_s &&
           signal_job(run, 0) > 0;
}

/* Until the program has ended. */
static void watch_job(struct watched_run *run, int signals)
{
    run->silence.looked_ns = run->silence.since_ns = monotonic_now_ns();
    job_reap(&run->job, run->socket, &run->collector,
             &run->collector_status); /* who ended before `signals` */
    while (!run->job.ended || is_left_ending(run)) {
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                               {.fd = run->socket, .events = POLLIN}};
        poll(fds, 2,
             run->options.timeout > 0 || run->ending_since_ns || run->judging_since_ns ? 100 : -1);
        if (fds[0].revents)
            take_signals(run, signals);
        if (run->socket >= 0 && fds[1].revents && !run_read_collector(run))
            run_replace_collector(run);
        check_time(run);
    }
}

/* "28622, 28623 and 6 more": what the program started and left behind. Returns how many. */
static int left_text(const struct watched_run *run, char *text, size_t bytes)
{
    enum { SHOWN = 8 };
    pid_t spared[JOB_SPARED], left[SHOWN];
    size_t used = 0;
    spare(run, spared);
    int count = job_left(spared, left, SHOWN);
    for (int i = 0; i < count && i < SHOWN && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%d", i ? ", " : "", (int)left[i]);
    if (count > SHOWN && used < bytes)
        snprintf(text + used, bytes - used, " and %d more", count - SHOWN);
    return count;
}

/* Ranks that hang, or a job in the background: said once. */
static void say_left(struct watched_run *run)
{
    char text[LEFT_BYTES], patience[32] = "";
    if (run->said_left || !left_text(run, text, sizeof text))
        return;
    run->said_left = true;
    if (run->options.quiet)
        return;
    if (run->options.timeout <= 0)
        snprintf(patience, sizeof patience, "%d s ", COLLECTOR_PATIENCE_S);
    fprintf(
        stderr,
        "ddpcheck: the program has exited, and what it started still runs: %s; waiting %sfor its "
        "end (Ctrl-C ends it)\n",
        text, patience);
    run->said_left = true;
}

static void leave_behind(struct watched_run *run)
{
    char text[LEFT_BYTES];
    if (run->options.quiet || !left_text(run, text, sizeof text))
        return;
    fprintf(stderr, "ddpcheck: still running, recorded in the background: %s", text);
    run_print_report(run, "; findings so far: ");
    run->left_behind = true;
}

static bool hear_collector(struct watched_run *run)
{
    if (!run_read_collector(run)) {
        run_replace_collector(run);
        if (run->socket >= 0)
            shutdown(run->socket, SHUT_WR);
    }
    return run->socket >= 0;
}

/* No call of NCCL was recorded so far, and what the program has started still runs: it may be the
 * job itself, which its launcher has put into the background. */
static bool may_begin(const struct watched_run *run)
{
    char text[LEFT_BYTES];
    return !run->has_recorded && left_text(run, text, sizeof text) > 0;
}

/* Lets the collector store and analyse what is left. With --timeout what the program has left
 * behind is part of the job, as long as it takes. */
static void finish_job(struct watched_run *run, int signals)
{
    if (run->socket < 0)
        return;
    bool is_over = false;
    uint64_t since_ns = monotonic_now_ns(), alone_since_ns = since_ns;
    for (bool is_open = true; is_open;) {
        if (!is_over && !may_begin(run)) {
            shutdown(run->socket, SHUT_WR);
            is_over = true;
        }
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                               {.fd = run->socket, .events = POLLIN}};
        poll(fds, 2, LOOK_MS);
        if (fds[0].revents)
            take_signals(run, signals);
        if (fds[1].revents)
            is_open = hear_collector(run);
        if (run->said_left || run->ending_since_ns || run->ends_for_finding)
            check_time(run);
        uint64_t now_ns = monotonic_now_ns();
        if (run->options.timeout > 0 && signal_job(run, 0) > 0)
            alone_since_ns = now_ns;
        if (is_open && (double)(now_ns - since_ns) / 1e9 > left_said_s)
            say_left(run);
        if (is_open && (double)(now_ns - alone_since_ns) / 1e9 > COLLECTOR_PATIENCE_S) {
            leave_behind(run);
            return;
        }
    }
}

/* Children that nobody waits for would stay in the process table of a container whose first process
 * is no init. A collector whose socket is closed is about to exit. */
static void reap_children(struct watched_run *run)
{
    if (run->socket < 0 && run->collector > 0)
        waitpid(run->collector, &run->collector_status, 0);
    run->collector = 0;
    job_reap(&run->job, run->socket, &run->collector, &run->collector_status);
}

/* Signals arrive through a file descriptor. Returns it, or -1 with err. */
static int open_signals(struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        sigaddset(&set, forwarded[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd : error_set(err, "can't wait for signals: %s", strerror(errno));
}

/* What is wrong with its files is said before the program starts. */
static int check_choice(const struct watched_run *run, struct error *err)
{
    struct choice choice;
    if (choice_load(&choice, &run->options.choice, err))
        return -1;
    choice_free(&choice);
    return 0;
}

/* The collector raises the limit for itself. This process does not: the job inherits its limit, and
 * one whose limit is that low could not be recorded. */
static int check_descriptors(struct error *err)
{
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    descriptors_raise();
    int result = descriptors_need("the collector", COLLECTOR_DESCRIPTORS, err);
    setrlimit(RLIMIT_NOFILE, &before);
    if (result == 0)
        result = descriptors_need("ddpcheck run", RUN_DESCRIPTORS, err);
    return result ? error_prefix(err, "can't record, so the program is not started") : 0;
}

/* The word of a choice; NULL where none was given. */
static const char *chosen_word(const char *const *words, int index)
{
    return index >= 0 ? words[index] : NULL;
}

/* The trace directory is ready; the hub's database is in it, or else where that address is. */
static void send_ready(const struct watched_run *run)
{
    const char *url = run->joined && !run_hub_pid(run->joined) ? run_hub_url(run->joined) : "";
    if (write(run->ready_fd, url, strlen(url)) < 0)
        fprintf(stderr, "ddpcheck: the TUI can't find the job's hub: %s\n", strerror(errno));
    close(run->ready_fd);
}

static void check_rings(struct watched_run *run)
{
    char rings[PATH_MAX];
    struct error err;
    if (directory_rings(run->directory, rings, &err) < 0)
        run_goes_unrecorded(run, err.text);
}

/* Whether there was a finding for which --fail-on or --error-exitcode asked. */
static bool has_failed_on(const struct watched_run *run)
{
    const struct run_options *options = &run->options;
    int least = options->error_exitcode == NO_STATUS ? NO_STATUS : SEVERITY_ERROR;
    if (options->fail_on != NO_STATUS)
        least = options->fail_on;
    for (int severity = SEVERITY_ERROR; severity <= least; severity++)
        if (run->found[severity] > 0)
            return true;
    return false;
}

static int failure_status(const struct run_options *options)
{
    return options->error_exitcode == NO_STATUS ? STATUS_FINDINGS : (int)options->error_exitcode;
}

static int run_watched(struct watched_run *run, char **argv)
{
    static const char *const stacks[] = {"0", "nccl", "lines",
                                         "all"}; /* as the shim reads DDPCHECK_STACKS */
    static const char *const cuda[] = {"used", "all", "none"};
    struct error err;
    char hang_after[32];
    if (access("/proc/self", F_OK) < 0)
        fprintf(stderr,
                "ddpcheck: there is no /proc here: how a process ended may stay unknown, and "
                "its stacks are recorded by itself alone\n");
    run->began_ns = realtime_now_ns();
    if (check_choice(run, &err) < 0 || check_descriptors(&err) < 0 ||
        directory_make(run->options.directory_name, run->directory, &err) < 0)
        return command_fail(&err);
    check_rings(run);
    if ((run->options.hub &&
         run_hub_open(&run->joined, run->options.hub, run->directory, argv, &err) < 0) ||
        (!run->is_unrecorded && run_start_collector(run, &err) < 0) ||
        (run->job.server = serve_metrics_start(run->options.metrics, run->directory, &err)) < 0)
        return command_fail(&err);
    int status = run->is_unrecorded ? 0 : run_wait_collector_ready(run);
    if (run->ready_fd >= 0)
        send_ready(run);
    int signals = status ? -1 : open_signals(&err);
    if (status)
        return status;
    snprintf(hang_after, sizeof hang_after, "%g", run->options.hang_after);
    const struct run_environment environment = {
        .directory = run->directory,
        .has_collector = !run->shared,
        .is_unrecorded = run->is_unrecorded,
        .emulate = run->options.emulate,
        .emulate_memory = run->options.emulate_memory,
        .hash = run->options.hash,
        .timing = run->options.timing,
        .guard = run->options.guard,
        .plugin = run->options.plugin,
        .stacks = chosen_word(stacks, run->options.stacks),
        .cuda = chosen_word(cuda, run->options.cuda),
        .hang_after = run->options.hang_after > 0 ? hang_after : NULL,
        .keep = run->options.keep,
    };
    struct run_output output = {.is_open = false};
    run_output_begin(&output);
    status = signals < 0 || run_environment_set(&environment, &err) < 0
                 ? STATUS_USAGE
                 : job_start(&run->job, argv, &err);
    if (status) {
        command_fail(&err);
        run_close_collector(run);
        if (run->collector > 0)
            waitpid(run->collector, NULL, 0);
        run_output_end(&output, signals);
        return status;
    }
    watch_job(run, signals);
    run_send_failure(run, argv);
    finish_job(run, signals);
    reap_children(run);
    run_print_summary(run, argv[0]);
    rankset_free(&run->possible);
    run_output_end(&output, signals);
    return has_failed_on(run) ? failure_status(&run->options) : job_exit_status(&run->job);
}

int run_program(struct watched_run *run, char **argv)
{
    int status = run_watched(run, argv);
    serve_stop(run->job.server);
    run_hub_close(run->joined);
    return status;
}
