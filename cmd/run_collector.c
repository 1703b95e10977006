/* run_collector.c: the collector of a run: starts it, hears what it says, and replaces one that was
 * killed. */
#include "cmd/run_collector.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "cmd/commands.h"
#include "cmd/job.h"
#include "cmd/run_environment.h"
#include "cmd/run_hub.h"
#include "collector/collector_notify.h"

enum { COLLECTOR_STARTS_MAX = 5 };

/* The collector is this program again, in a process group of its own, so that no Ctrl-C reaches it.
 * It has no session of its own: where the kernel divides processors among sessions (autogroup in
 * sched(7)), it would wait for tenths of a second on a busy machine, too long for reading progress.
 */
static void become_collector(const struct watched_run *run, int socket)
{
    char fd[16], hang_after[32], timeout[32];
    const char *argv[14 + CHOICE_WORDS_MAX];
    int count = 0;
    snprintf(fd, sizeof fd, "%d", socket);
    snprintf(hang_after, sizeof hang_after, "%g", run->options.hang_after);
    argv[count++] = "ddpcheck";
    argv[count++] = "collect";
    argv[count++] = "--notify-fd";
    argv[count++] = fd;
    if (run->options.hang_after > 0) {
        argv[count++] = "--hang-after";
        argv[count++] = hang_after;
    }
    if (run->options.timeout > 0) {
        snprintf(timeout, sizeof timeout, "%g", run->options.timeout);
        argv[count++] = "--timeout";
        argv[count++] = timeout;
    }
    argv[count++] = "--keep";
    argv[count++] = run->options.keep;
    if (!run->ready) /* else it goes on with the database of the previous collector */
        argv[count++] = "--fresh";
    count += choice_words(&run->options.choice, argv + count);
    argv[count++] = run->directory;
    argv[count] = NULL;
    if (run->joined)
        setenv("DDPCHECK_HUB", run_hub_url(run->joined), 1);
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN); /* a message may go to the terminal */
    fcntl(socket, F_SETFD, 0);
    char path[PATH_MAX];
    struct error err;
    execv("/proc/self/exe", (char *const *)argv);
    if (tool_path(path, &err) == 0)
        execv(path, (char *const *)argv);
    fprintf(stderr, "ddpcheck: can't start the collector: %s: %s\n", path, strerror(errno));
    _exit(STATUS_USAGE);
}

int run_start_collector(struct watched_run *run, struct error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set(err, "can't start the collector: %s", strerror(errno));
    run->collector_starts++;
    run->collector = fork();
    if (run->collector < 0) {
        close(ends[0]);
        close(ends[1]);
        return error_set(err, "can't start the collector: %s", strerror(errno));
    }
    if (run->collector == 0) {
        close(ends[0]);
        become_collector(run, ends[1]);
    }
    close(ends[1]);
    run->socket = ends[0];
    run->line_bytes = 0;
    return 0;
}

/* Without a run of its own a collector serves another job: bare LD_PRELOAD, or what an earlier run
 * has left behind. */
static void print_held(const struct watched_run *run, pid_t holder)
{
    fprintf(stderr,
            "ddpcheck: process %d already collects into %s; it takes this job's records and "
            "findings, too%s\n",
            (int)holder, run->options.directory_name,
            run->options.timeout > 0 ? ", and --timeout does nothing" : "");
    if (holder > 0 && !job_is_child_of_ours(holder))
        fprintf(
            stderr,
            "ddpcheck: it does so for another job, whose processes still run: end them if they "
            "are left over ('ddpcheck report %s' shows them), or give this job another directory "
            "with -o\n",
            run->options.directory_name);
}

static void read_collector_line(struct watched_run *run, const char *line)
{
    int holder;
    if (strcmp(line, "ready") == 0)
        run->ready = true;
    else if (strcmp(line, "judged") == 0)
        run->judged = true;
    else if (strcmp(line, "activity") == 0) {
        run->silence.since_ns = monotonic_now_ns();
        run->has_recorded = true;
    } else if (strcmp(line, "starting") == 0)
        run->silence.since_ns = monotonic_now_ns();
    else if (strncmp(line, "finding ", 8) == 0)
        run->ends_for_finding |= run_print_finding(run, line + 8);
    else if (strncmp(line, "more ", 5) == 0)
        run_keep_detail(run, line + 5);
    else if (strncmp(line, "withdrawn ", 10) == 0)
        run_print_withdrawn(run, line + 10);
    else if (sscanf(line, "held %d", &holder) == 1) {
        run->shared = true;
        if (!run->options.quiet)
            print_held(run, holder);
        run->options.timeout = 0; /* nobody says here whether the job makes progress */
    } else if (strncmp(line, "full ", 5) == 0)
        run_print_full(run, line + 5);
    else if (strncmp(line, "gone ", 5) == 0)
        run_print_gone(run, line + 5);
    else if (strncmp(line, "state ", 6) == 0)
        run_print_state(run, line + 6);
    else if (sscanf(line, "unrecorded %d %d", &run->unrecorded, &run->unrecorded_error) == 2)
        return;
    else if (strncmp(line, "end ", 4) == 0)
        run->saw_end = sscanf(line, "end %d %d %d %d %d %d", &run->ranks, &run->communicators,
                              &run->found[SEVERITY_ERROR], &run->found[SEVERITY_WARNING],
                              &run->found[SEVERITY_NOTE], &run->sent) == 6;
}

bool run_read_collector(struct watched_run *run)
{
    ssize_t got = recv(run->socket, run->line + run->line_bytes, sizeof run->line - run->line_bytes,
                       MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        return false;
    run->line_bytes += (size_t)got;
    char *start = run->line, *end;
    while ((end = memchr(start, '\n', run->line_bytes - (size_t)(start - run->line)))) {
        *end = 0;
        read_collector_line(run, start);
        start = end + 1;
    }
    run->line_bytes -= (size_t)(start - run->line);
    memmove(run->line, start, run->line_bytes);
    if (run->line_bytes == sizeof run->line) /* no line of ours is that long */
        run->line_bytes = 0;
    return true;
}

void run_close_collector(struct watched_run *run)
{
    if (run->socket >= 0)
        close(run->socket);
    run->socket = -1;
}

void run_replace_collector(struct watched_run *run)
{
    run_close_collector(run);
    if (run->shared || run->saw_end)
        return;
    struct error err = {"it keeps ending"};
    if (run->collector_starts < COLLECTOR_STARTS_MAX && run_start_collector(run, &err) == 0)
        return;
    fprintf(stderr,
            "ddpcheck: no collector: %s; afterwards, 'ddpcheck collect %s' stores what the rings "
            "still hold\n",
            err.text, run->options.directory_name);
}

void run_goes_unrecorded(struct watched_run *run, const char *why)
{
    fprintf(stderr, "ddpcheck: %s; the program starts, and nothing of it is recorded%s\n", why,
            run->options.timeout > 0 ? " (--timeout does nothing)" : "");
    run->is_unrecorded = true;
    run->options.timeout = 0;
}

/* It is not waited for: who waits for storage is killed once that answers. */
static void give_up_collector(struct watched_run *run)
{
    char why[96];
    snprintf(why, sizeof why, "the collector, process %d, has not begun within %d s",
             (int)run->collector, COLLECTOR_PATIENCE_S);
    kill(run->collector, SIGKILL);
    run->collector = 0;
    run_close_collector(run);
    run_goes_unrecorded(run, why);
}

int run_wait_collector_ready(struct watched_run *run)
{
    while (!run->ready && !run->shared) {
        struct pollfd fd = {.fd = run->socket, .events = POLLIN};
        int status = 0;
        if (poll(&fd, 1, COLLECTOR_PATIENCE_S * 1000) == 0) {
            give_up_collector(run);
            return 0;
        }
        if (run_read_collector(run))
            continue;
        waitpid(run->collector, &status, 0);
        run->collector = 0;
        if (WIFSIGNALED(status))
            run_replace_collector(run);
        else
            run_close_collector(run); /* it has said why */
        if (run->socket < 0)
            return STATUS_USAGE;
    }
    return 0;
}
