/* run_tui.c: runs a job beside the TUI. */
#include "cmd/run_tui.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/trace_directory.h"
#include "lib/base/terminal.h"
#include "tui/tui.h"

static volatile sig_atomic_t job_pid; /* of the process that a signal is passed on to */

struct child {
    pid_t pid;
    bool ended;
    int status;
    char log[PATH_MAX];
};

static void forward_signal(int signal_number)
{
    if (job_pid > 0)
        kill((pid_t)job_pid, signal_number);
}

/* A session of its own: Ctrl-C in the TUI leaves the TUI. */
static void become_job(int (*job)(void *context, int ready), void *context, int ready, int log)
{
    int nothing = open("/dev/null", O_RDONLY);
    setsid();
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(2);
    int status = job(context, ready);
    fflush(NULL);
    _exit(status);
}

static int start_child(struct child *child, int (*job)(void *context, int ready), void *context,
                       const char *directory, int *ready, struct error *err)
{
    int ends[2];
    snprintf(child->log, sizeof child->log, "%s/output.log", directory);
    int log = open(child->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (log < 0)
        return error_set(err, "can't write the job's output to %s: %s", child->log,
                         strerror(errno));
    if (!directory_file_is_plain(log) || ftruncate(log, 0) < 0) {
        close(log);
        return error_set(err, "can't write the job's output to %s: it is a link, or no plain file",
                         child->log);
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        close(log);
        return error_set(err, "can't start the job: %s", strerror(errno));
    }
    child->pid = fork();
    if (child->pid == 0) {
        close(ends[0]);
        become_job(job, context, ends[1], log);
    }
    close(log);
    close(ends[1]);
    *ready = ends[0];
    return child->pid > 0 ? 0 : error_set(err, "can't start the job: %s", strerror(errno));
}

/* Until the other end is closed. */
static void wait_closed(int ready)
{
    char byte;
    while (read(ready, &byte, 1) > 0 || errno == EINTR)
        ;
    close(ready);
}

/* For the TUI while it waits for a trace: a job that has ended makes none. */
static bool has_child_ended(void *context)
{
    struct child *child = context;
    if (!child->ended && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
        child->ended = true;
    return child->ended;
}

static void wait_for_end(struct child *child)
{
    const struct sigaction pass = {.sa_handler = forward_signal};
    if (has_child_ended(child))
        return;
    fprintf(stderr,
            "ddpcheck: the job is still running, its output is in %s; Ctrl-C terminates it\n",
            child->log);
    job_pid = child->pid;
    sigaction(SIGINT, &pass, NULL);
    sigaction(SIGTERM, &pass, NULL);
    sigaction(SIGHUP, &pass, NULL);
    while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
        ;
    job_pid = 0;
    child->ended = true;
}

int run_under_tui(int (*job)(void *context, int ready), void *context, const char *directory,
                  struct error *err)
{
    struct child child = {0};
    int ready = -1;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return error_set(err, "--tui needs a terminal");
    if (start_child(&child, job, context, directory, &ready, err) < 0)
        return -1;
    wait_closed(ready);
    const struct tui_options options = {
        .paths = &directory,
        .count = 1,
        .color = terminal_colored(COLOR_AUTO, STDOUT_FILENO),
        .wait_s = INT_MAX,
        .give_up = has_child_ended,
        .context = &child,
        .waiting_for = "the job's first NCCL call",
    };
    struct error why = {""};
    int shown = tui_run(&options, &why);
    wait_for_end(&child);
    if (shown < 0)
        fprintf(stderr, "ddpcheck: %s\n", why.text);
    fprintf(stderr,
            "ddpcheck: the job has finished, its output is in %s; report: ddpcheck report %s\n",
            child.log, directory);
    return WIFSIGNALED(child.status) ? 128 + WTERMSIG(child.status) : WEXITSTATUS(child.status);
}
