/* launcher.c: starts one process per rank, waits for them, and restarts them after a failure. */
#include "trainer/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/check.h"
#include "trainer/clock.h"
#include "trainer/environment.h"
#include "trainer/store.h"

static const double patience_s = 5.0; /* between SIGTERM and SIGKILL */
enum { WRONG_INPUT = 2 };             /* exit status of a rank that refused its options or files */

struct gang {
    const struct train_options *options;
    char **argv;
    char run_id[32];
    pid_t *pids; /* 0: has ended */
    int size, running;
    int restart;       /* how often all were started again */
    int first_failure; /* exit status, 0: none */
    double kill_at_s;  /* 0: no rank was asked to end */
    bool asked_to_end; /* by a signal to the launcher */
};

static void export_number(const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* In the child: becomes rank `rank`. */
static void become_rank(const struct gang *gang, int rank, int store_socket, int port)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no rank outlives its launcher */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    export_number("RANK", rank);
    export_number("LOCAL_RANK", rank);
    export_number("WORLD_SIZE", gang->size);
    export_number("MASTER_PORT", port);
    export_number("TORCHELASTIC_RESTART_COUNT", gang->restart);
    export_number("TORCHELASTIC_MAX_RESTARTS",
                  gang->options->launch.elastic ? gang->options->launch.max_restarts : 0);
    setenv("TORCHELASTIC_RUN_ID", gang->run_id, 1);
    unsetenv("TORCHELASTIC_USE_AGENT_STORE"); /* of a torchrun around this launcher: here rank 0 has
                                                 the store */
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("OMP_NUM_THREADS", "1", 0); /* as torchrun does: N ranks share the cores */
    unsetenv(ENVIRONMENT_STORE_SOCKET);
    if (rank == 0) {
        fcntl(store_socket, F_SETFD, 0);
        export_number(ENVIRONMENT_STORE_SOCKET, store_socket);
    }
    /* By its path, not as /proc/self/exe, so that ps and debuggers show the program's name. */
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    execv(path, gang->argv);
    fprintf(stderr, "ddptrain: rank %d: can't start %s: %s\n", rank, path, strerror(errno));
    _exit(127);
}

static void signal_gang(const struct gang *gang, int number)
{
    for (int rank = 0; rank < gang->size; rank++)
        if (gang->pids[rank] > 0)
            kill(gang->pids[rank], number);
}

/* Each start has a store and a port of its own, so that no rank of the last one can meet this
 * one's. */
static void start_gang(struct gang *gang)
{
    struct error err = {0};
    gang->first_failure = 0;
    gang->kill_at_s = 0;
    int port = 0, store_socket = store_listen(&port, &err);
    if (store_socket < 0)
        fatal("%s", err.text);
    for (int rank = 0; rank < gang->size; rank++) {
        pid_t pid = fork();
        if (pid == 0)
            become_rank(gang, rank, store_socket, port);
        if (pid < 0) {
            int why = errno;
            signal_gang(gang, SIGKILL);
            fatal("can't start rank %d: %s", rank, strerror(why));
        }
        gang->pids[rank] = pid;
        gang->running++;
    }
    close(store_socket); /* rank 0 has it now */
}

static void rank_ended(struct gang *gang, pid_t pid, int status)
{
    bool take_others = !gang->options->launch.no_gang;
    int rank = 0;
    while (rank < gang->size && gang->pids[rank] != pid)
        rank++;
    if (rank == gang->size)
        return;
    gang->pids[rank] = 0;
    gang->running--;
    bool exited = WIFEXITED(status);
    int number = exited ? WEXITSTATUS(status) : WTERMSIG(status);
    int code = exited ? number : 128 + number;
    if (code == 0 || gang->kill_at_s > 0)
        return;
    const char *how = exited ? "exited with status" : "was killed by signal";
    notice("rank %d %s %d%s", rank, how, number,
           take_others && gang->running ? "; terminating the others" : "");
    if (gang->first_failure == 0)
        gang->first_failure = code;
    if (take_others) {
        signal_gang(gang, SIGTERM);
        gang->kill_at_s = clock_seconds() + patience_s;
    }
}

static void collect_ended(struct gang *gang)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        rank_ended(gang, pid, status);
}

static void watch_gang(struct gang *gang, const sigset_t *awaited)
{
    while (gang->running > 0) {
        int received =
            sigtimedwait(awaited, NULL, &(struct timespec){.tv_nsec = 200 * 1000 * 1000});
        if (received == SIGTERM || received == SIGINT) {
            signal_gang(gang, received);
            gang->asked_to_end = true;
            gang->kill_at_s = clock_seconds() + patience_s;
            gang->first_failure = gang->first_failure ? gang->first_failure : 128 + received;
        }
        collect_ended(gang);
        if (gang->kill_at_s > 0 && clock_seconds() > gang->kill_at_s)
            signal_gang(gang, SIGKILL);
    }
}

/* A rank that failed for a reason that may be gone in the next attempt. */
static bool restart_gang(struct gang *gang)
{
    const struct train_options *options = gang->options;
    if (!options->launch.elastic || gang->first_failure == 0 ||
        gang->first_failure == WRONG_INPUT || gang->asked_to_end)
        return false;
    if (gang->restart == options->launch.max_restarts) {
        notice("gave up after %d restart%s (--max-restarts)", gang->restart,
               gang->restart == 1 ? "" : "s");
        return false;
    }
    gang->restart++;
    notice("starting all %d ranks again (restart %d of at most %d)", gang->size, gang->restart,
           options->launch.max_restarts);
    return true;
}

int launcher_run(const struct train_options *options, char **argv)
{
    struct gang gang = {.options = options,
                        .argv = argv,
                        .size = options->launch.ranks,
                        .pids = allocate((size_t)options->launch.ranks, sizeof *gang.pids)};
    snprintf(gang.run_id, sizeof gang.run_id, "ddptrain-%d", (int)getpid());
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGINT);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    do {
        start_gang(&gang);
        watch_gang(&gang, &awaited);
    } while (restart_gang(&gang));
    free(gang.pids);
    return gang.first_failure;
}
