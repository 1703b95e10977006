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

#include "cmd/hub/hub_server.h"
#include "cmd/hub/job_folder.h"
#include "cmd/hub/job_copy.h"
#include "collector/trace_directory.h"
#include "lib/base/terminal.h"
#include "tui/tui.h"

/* The process that runs the job. Signal handlers have no context, so it is one for all. */
static volatile sig_atomic_t job_pid, job_ended, job_status;

static void forward_signal(int signal_number)
{
    if (!job_ended)
        kill((pid_t)job_pid, signal_number);
}

/* As `ddpcheck run` without the TUI does: what would end this process ends the job. What nohup
 * ignores stays ignored. */
static void forward_signals(void)
{
    static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction pass = {.sa_handler = forward_signal};
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++) {
        struct sigaction before;
        sigaction(forwarded[i], NULL, &before);
        if (before.sa_handler != SIG_IGN)
            sigaction(forwarded[i], &pass, NULL);
    }
}

/* At its end, whatever the TUI does then: what is not waited for stays in the list of processes. */
static void reap_job(int signal_number)
{
    int before = errno, status;
    (void)signal_number;
    if (waitpid((pid_t)job_pid, &status, WNOHANG) == (pid_t)job_pid) {
        job_status = status;
        job_ended = 1;
    }
    errno = before;
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

static int open_output_log(const char *path, const char *directory, struct error *err)
{
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (log < 0)
        return error_set(err, "can't write the job's output to %s: %s", path, strerror(errno));
    if (directory_check_file(log, directory, "output.log", err) == 0) {
        if (ftruncate(log, 0) == 0)
            return log;
        error_set(err, "can't empty %s: %s", path, strerror(errno));
    }
    close(log);
    return -1;
}

static int start_job(int (*job)(void *context, int ready), void *context, const char *path,
                     const char *directory, int *ready, struct error *err)
{
    const struct sigaction reap = {.sa_handler = reap_job, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    int ends[2];
    int log = open_output_log(path, directory, err);
    if (log < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        close(log);
        return error_set(err, "can't start the job: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        become_job(job, context, ends[1], log);
    }
    close(log);
    close(ends[1]);
    *ready = ends[0];
    if (pid < 0)
        return error_set(err, "can't start the job: %s", strerror(errno));
    job_pid = pid;
    sigaction(SIGCHLD, &reap, NULL);
    reap_job(SIGCHLD); /* it may have ended already */
    return 0;
}

/* What is written until the other end is closed. */
static void read_ready(int ready, char url[HUB_URL_BYTES])
{
    size_t length = 0;
    ssize_t bytes;
    do {
        bytes = read(ready, url + length, HUB_URL_BYTES - 1 - length);
        length += bytes > 0 ? (size_t)bytes : 0;
    } while (bytes > 0 || (bytes < 0 && errno == EINTR));
    url[length] = 0;
    close(ready);
}

/* For the TUI while it waits for a trace: a job that has ended makes none. */
static bool has_job_ended(void *unused)
{
    (void)unused;
    return job_ended;
}

static void wait_for_end(const char *log, bool is_signalled)
{
    sigset_t child, before;
    if (job_ended)
        return;
    if (!is_signalled)
        fprintf(stderr,
                "ddpcheck: the job is still running, its output is in %s; Ctrl-C terminates it\n",
                log);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    while (!job_ended)
        sigsuspend(&before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

int run_under_tui(int (*job)(void *context, int ready), void *context, const char *directory,
                  struct error *err)
{
    char log[PATH_MAX], url[HUB_URL_BYTES];
    int ready = -1;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return error_set(err, "--tui needs a terminal");
    snprintf(log, sizeof log, "%s/output.log", directory);
    if (start_job(job, context, log, directory, &ready, err) < 0)
        return -1;
    forward_signals();
    read_ready(ready, url);
    struct job_choice choice = {
        .directories = &directory, .count = 1, .copy = *url ? job_copy_follow(url) : NULL};
    int ended_by = 0;
    const struct tui_options options = {
        .paths = &directory,
        .count = 1,
        .color = terminal_colored(COLOR_AUTO, STDOUT_FILENO),
        .wait_s = INT_MAX,
        .give_up = has_job_ended,
        .instead = job_choice_find,
        .trouble = job_choice_trouble,
        .context = &choice,
        .ended_by = &ended_by,
        .waiting_for = "the job's first NCCL call",
    };
    struct error why = {""};
    int shown = tui_run(&options, &why);
    bool ends_job = ended_by && ended_by != SIGINT; /* Ctrl-C leaves the TUI only */
    if (ends_job)
        forward_signal(ended_by);
    job_copy_close(choice.copy);
    wait_for_end(log, ends_job);
    if (shown < 0)
        fprintf(stderr, "ddpcheck: %s\n", why.text);
    fprintf(stderr,
            "ddpcheck: the job has finished, its output is in %s; report: ddpcheck report %s\n",
            log, directory);
    int status = job_status;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
