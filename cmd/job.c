/* job.c: starts the program of `ddpcheck run`, forwards signals and waits for all that it starts.
 */
#include "cmd/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/process_file.h"

enum { PROCESSES_MAX = 32768 };

/* A process outside the foreground may not give the terminal away unless it ignores SIGTTOU. */
static void give_terminal(pid_t group)
{
    void (*before)(int) = signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(STDIN_FILENO, group);
    signal(SIGTTOU, before);
}

/* Takes the terminal back after the job. */
static void job_release_terminal(struct run_job *job)
{
    if (job->has_terminal)
        give_terminal(getpgrp());
    job->has_terminal = false;
}

static void become_program(char *const *argv, int report, bool has_terminal)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    if (has_terminal)
        give_terminal(getpid());
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    int number = errno;
    if (write(report, &number, sizeof number) != sizeof number)
        _exit(JOB_NOT_RUNNABLE);
    _exit(number == ENOENT || number == ENOTDIR ? JOB_NOT_FOUND : JOB_NOT_RUNNABLE);
}

int job_start(struct run_job *job, char *const *argv, struct error *err)
{
    int report[2], number = 0;
    *job = (struct run_job){.server = job->server,
                            .has_terminal = isatty(STDIN_FILENO) &&
                                            tcgetpgrp(STDIN_FILENO) == getpgrp()};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(report, O_CLOEXEC) < 0 || (job->pid = fork()) < 0) {
        error_set(err, "can't start %s: %s", argv[0], strerror(errno));
        return JOB_NOT_RUNNABLE;
    }
    if (job->pid == 0)
        become_program(argv, report[1], job->has_terminal);
    setpgid(job->pid, job->pid); /* both do it, so that neither has to wait for the other */
    close(report[1]);
    ssize_t got = read(report[0], &number, sizeof number);
    close(report[0]);
    if (got != sizeof number)
        return 0;
    waitpid(job->pid, NULL, 0);
    job_release_terminal(job);
    const char *hint = "";
    struct stat file;
    if (number == ENOENT && !strchr(argv[0], '/'))
        hint = " (is it in PATH?)";
    else if (number == EACCES)
        hint = stat(argv[0], &file) == 0 && S_ISDIR(file.st_mode) ? " (it is a directory)"
                                                                  : " (is it executable?)";
    error_set(err, "can't run %s: %s%s", argv[0], strerror(number), hint);
    return number == ENOENT || number == ENOTDIR ? JOB_NOT_FOUND : JOB_NOT_RUNNABLE;
}

/* Ctrl-Z: the shell must see us stopped; when it continues us, the job goes on. */
static void stop_with_job(struct run_job *job)
{
    bool had_terminal = job->has_terminal;
    job_release_terminal(job);
    raise(SIGSTOP);
    job->has_terminal = had_terminal && tcgetpgrp(STDIN_FILENO) == getpgrp();
    if (job->has_terminal)
        give_terminal(job->pid);
    kill(-job->pid, SIGCONT);
}

/* Once it is reaped nobody else can find out how a process ended, and the collector may not have
 * seen it yet. A zombie's number is nobody else's. */
static void send_exit(int collector, const siginfo_t *info)
{
    char line[96];
    int status = info->si_code == CLD_EXITED ? W_EXITCODE(info->si_status, 0)
                                             : W_EXITCODE(0, info->si_status);
    int bytes = snprintf(line, sizeof line, "exited %d %d %" PRIu64 "\n", (int)info->si_pid, status,
                         process_start_ticks(info->si_pid));
    if (collector >= 0)
        send(collector, line, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The next child that has ended or stopped, reported and reaped; 0 if there is none now. */
static pid_t reap_next(struct run_job *job, int collector, int *status)
{
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
        return 0;
    if (info.si_code != CLD_STOPPED && info.si_code != CLD_TRAPPED)
        send_exit(collector, &info);
    if (info.si_pid == job->pid)
        job->start_ticks = process_start_ticks(job->pid);
    return waitpid(info.si_pid, status, WNOHANG | WUNTRACED);
}

void job_reap(struct run_job *job, int collector, pid_t *other, int *other_status)
{
    int status;
    for (pid_t pid; (pid = reap_next(job, collector, &status)) > 0;) {
        if (WIFSTOPPED(status)) {
            if (pid == job->pid && job->has_terminal)
                stop_with_job(job);
        } else if (pid == job->pid) {
            job->ended = true;
            job->status = status;
            job_release_terminal(job);
        } else if (pid == *other) {
            *other = 0;
            *other_status = status;
        }
    }
}

void job_forward(const struct run_job *job, int signal_number)
{
    if (!job->ended)
        kill(-job->pid, signal_number);
}

struct family {
    pid_t pid, parent;
};

static int read_processes(struct family *processes)
{
    DIR *directory = opendir("/proc");
    int count = 0;
    for (struct dirent *entry;
         directory && count < PROCESSES_MAX && (entry = readdir(directory));) {
        char text[1024];
        int pid = atoi(entry->d_name), parent;
        if (pid <= 0)
            continue;
        const char *name_end = process_stat_read(pid, text, sizeof text);
        char state;
        if (name_end && sscanf(name_end + 1, " %c %d", &state, &parent) == 2 && state != 'Z')
            processes[count++] = (struct family){pid, parent};
    }
    if (directory)
        closedir(directory);
    return count;
}

static bool is_spared(pid_t pid, const pid_t spared[JOB_SPARED])
{
    for (int i = 0; i < JOB_SPARED; i++)
        if (spared[i] == pid)
            return true;
    return false;
}

/* Moves descendants of this process to the front, those spared and their children left out. Returns
 * how many there are. */
static int find_descendants(struct family *processes, int count, const pid_t spared[JOB_SPARED])
{
    int found = 0;
    for (int parent = -1; parent < found; parent++) {
        pid_t of = parent < 0 ? getpid() : processes[parent].pid;
        for (int i = found; i < count; i++) {
            if (processes[i].parent != of || is_spared(processes[i].pid, spared))
                continue;
            struct family child = processes[i];
            processes[i] = processes[found];
            processes[found++] = child;
        }
    }
    return found;
}

/* The descendants of this process, which the caller frees; NULL, and a count of 0, where there is
 * no memory. */
static struct family *read_descendants(const pid_t spared[JOB_SPARED], int *count)
{
    struct family *processes = malloc(PROCESSES_MAX * sizeof *processes);
    *count = processes ? find_descendants(processes, read_processes(processes), spared) : 0;
    return processes;
}

int job_signal_all(const struct run_job *job, const pid_t spared[JOB_SPARED], int signal_number)
{
    int count, sent = 0;
    if (!job->ended)
        kill(-job->pid, signal_number);
    struct family *processes = read_descendants(spared, &count);
    for (int i = 0; i < count; i++) {
        bool in_group = getpgid(processes[i].pid) == job->pid && !job->ended;
        sent += in_group || kill(processes[i].pid, signal_number) == 0;
    }
    free(processes);
    return sent;
}

int job_left(const pid_t spared[JOB_SPARED], pid_t *left, int most)
{
    int count;
    struct family *processes = read_descendants(spared, &count);
    for (int i = 0; i < count && i < most; i++)
        left[i] = processes[i].pid;
    free(processes);
    return count;
}

bool job_is_child_of_ours(pid_t pid)
{
    char text[1024], path[32], ours[PATH_MAX], its[PATH_MAX];
    const char *name_end = process_stat_read(pid, text, sizeof text);
    char state;
    int parent;
    if (!name_end || sscanf(name_end + 1, " %c %d", &state, &parent) != 2)
        return false;
    snprintf(path, sizeof path, "/proc/%d/exe", parent);
    ssize_t bytes = readlink("/proc/self/exe", ours, sizeof ours);
    return bytes > 0 && readlink(path, its, sizeof its) == bytes &&
           memcmp(ours, its, (size_t)bytes) == 0;
}

int job_exit_status(const struct run_job *job)
{
    return WIFSIGNALED(job->status) ? 128 + WTERMSIG(job->status) : WEXITSTATUS(job->status);
}
