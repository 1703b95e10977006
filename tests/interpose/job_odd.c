/* job_odd.c: programs that do to their process what few do, by name: job_odd NAME. Each does so
 * around its first NCCL call and prints "ok" at its end; the shim must neither disturb it nor lose
 * its calls. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#define EXPECT(condition)                                                             \
    do {                                                                              \
        if (!(condition)) {                                                           \
            dprintf(error_fd, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            _exit(9);                                                                 \
        }                                                                             \
    } while (0)

extern char **environ;

static int error_fd = STDERR_FILENO;
static float *memory;
static cudaStream_t stream;
static ncclComm_t comm;

static void begin(void)
{
    ncclUniqueId id;
    memset(&id, 7, sizeof id);
    EXPECT(!ncclCommInitRank(&comm, 1, id, 0));
    EXPECT(!cudaStreamCreate(&stream));
    EXPECT(!cudaMalloc((void **)&memory, 4096));
}

static void reduce(size_t count)
{
    EXPECT(!ncclAllReduce(memory, memory, count, ncclFloat32, ncclSum, comm, stream));
}

static void *reduce_in_thread(void *count)
{
    reduce((size_t)count);
    return NULL;
}

static void run_thread(void *(*function)(void *), void *argument, size_t stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    EXPECT(!pthread_attr_init(&attributes));
    EXPECT(!stack || !pthread_attr_setstacksize(&attributes, stack));
    EXPECT(!pthread_create(&thread, &attributes, function, argument));
    EXPECT(!pthread_join(thread, NULL));
}

/* The environment is gone, as in daemons that begin with a clean one. */
static void clears_environment(void)
{
    EXPECT(!clearenv() && !environ);
    begin();
    reduce(1);
}

static void replaces_environment(void)
{
    EXPECT(!clearenv() && !setenv("PATH", "/bin:/usr/bin", 1));
    begin();
    reduce(1);
}

static void own_environment(void)
{
    static char *none[] = {NULL};
    environ = none;
    begin();
    reduce(1);
}

/* Whatever is opened now gets the numbers of the standard streams, and what the program prints goes
 * there. */
static void closed_streams(void)
{
    error_fd = fcntl(STDERR_FILENO, F_DUPFD, 10);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    begin();
    reduce(1);
    for (int fd = 0; fd < 3; fd++)
        EXPECT(write(fd, "this goes nowhere", 17) < 0 && errno == EBADF);
}

/* Its own file gets the number of a descriptor that it did not know, then threads come. */
static void closes_all(void)
{
    struct stat before, after;
    const char *path = "own-file";
    begin();
    error_fd = 2;
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    int own = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int fd = 3; fd < 1000; fd++)
        EXPECT(fd == own || dup2(own, fd) == fd);
    EXPECT(own >= 0 && write(own, "mine", 4) == 4 && !fstat(own, &before));
    run_thread(reduce_in_thread, (void *)2, 0);
    reduce(1);
    EXPECT(!stat(path, &after) && after.st_size == before.st_size && after.st_size == 4);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child)
        _exit(fstat(512, &after) == 0 && after.st_ino == before.st_ino ? 0 : 1);
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

/* stderr is a pipe that nobody reads any more, or that is full. */
static void broken_pipe(void)
{
    int ends[2];
    error_fd = fcntl(STDERR_FILENO, F_DUPFD, 10);
    EXPECT(!pipe(ends) && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    begin();
    reduce(1);
}

static void full_pipe(void)
{
    int ends[2];
    error_fd = fcntl(STDERR_FILENO, F_DUPFD, 10);
    EXPECT(!pipe(ends) && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    EXPECT(!fcntl(ends[1], F_SETFL, O_NONBLOCK));
    while (write(ends[1], "                ", 16) == 16) {}
    EXPECT(!fcntl(ends[1], F_SETFL, 0));
    begin();
    reduce(1);
}

static void *begin_in_thread(void *unused)
{
    begin();
    reduce(1);
    return unused;
}

static void small_stack(void)
{
    run_thread(begin_in_thread, NULL, 16384); /* PTHREAD_STACK_MIN of glibc 2.28 */
}

static volatile sig_atomic_t children;

static void count_child(int number)
{
    (void)number;
    children++;
}

/* Counts its children, by signal and by wait(). */
static void counts_children(void)
{
    struct sigaction action = {.sa_handler = count_child};
    EXPECT(!sigaction(SIGCHLD, &action, NULL));
    begin();
    reduce(1);
    EXPECT(wait(NULL) == -1 && errno == ECHILD);
    usleep(100000); /* the collector's start is over */
    EXPECT(children == 0 && wait(NULL) == -1 && errno == ECHILD);
}

static void blocks_signals(void)
{
    sigset_t all, now;
    sigfillset(&all);
    EXPECT(!sigprocmask(SIG_SETMASK, &all, NULL));
    begin();
    reduce(1);
    EXPECT(!sigprocmask(SIG_SETMASK, NULL, &now));
    EXPECT(sigismember(&now, SIGPIPE) && sigismember(&now, SIGCHLD) && !sigpending(&now) &&
           !sigismember(&now, SIGPIPE) && !sigismember(&now, SIGCHLD));
}

static void limit(int resource, rlim_t value)
{
    EXPECT(!setrlimit(resource, &(struct rlimit){value, value}));
}

static void no_files(void)
{
    limit(RLIMIT_NOFILE, 3);
    begin();
    reduce(1);
}

static void few_files(void)
{
    limit(RLIMIT_NOFILE, 12);
    begin();
    reduce(1);
}

/* More than this can't be written: a signal says so, and ends the process. */
static void small_files(void)
{
    limit(RLIMIT_FSIZE, 0);
    begin();
    reduce(1);
}

static void small_memory(void)
{
    limit(RLIMIT_AS, 64 << 20);
    begin();
    reduce(1);
}

static void no_processes(void)
{
    limit(RLIMIT_NPROC, 1);
    begin();
    reduce(1);
}

/* /proc/self then belongs to root. */
static void undumpable(void)
{
    EXPECT(!prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    begin();
    reduce(1);
}

static void lost_directory(void)
{
    EXPECT(!mkdir("gone", 0700) && !chdir("gone") && !rmdir("../gone"));
    begin();
    reduce(1);
}

static void *cancelled(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    pthread_cancel(pthread_self());
    begin();
    pthread_testcancel();
    return unused;
}

static void cancels_thread(void)
{
    run_thread(cancelled, NULL, 0);
    reduce(2);
}

/* What the CUDA of this directory calls while a stream is waited for. */
void fake_waits(void);
static jmp_buf before_wait;
static enum { STAYS, JUMPS, ENDS } at_wait;

void fake_waits(void)
{
    if (at_wait == JUMPS)
        longjmp(before_wait, 1);
    if (at_wait == ENDS)
        pthread_exit(NULL);
}

static __attribute__((noinline)) void jump_out(void)
{
    at_wait = JUMPS;
    if (!setjmp(before_wait))
        cudaStreamSynchronize(stream);
    at_wait = STAYS;
}

/* The program writes that it waited in vain, and goes on. */
static void leave_wait(void)
{
    char text[64];
    jump_out();
    EXPECT(snprintf(text, sizeof text, "%s after %d s", "time-out", 1) > 0);
}

static void jumps_out_of_call(void)
{
    begin();
    leave_wait();
    reduce(1);
    cudaStreamSynchronize(stream);
    reduce(2);
}

static void *end_in_call(void *unused)
{
    at_wait = ENDS;
    cudaStreamSynchronize(stream);
    return unused;
}

static void ends_in_call(void)
{
    begin();
    run_thread(end_in_call, NULL, 0);
    at_wait = STAYS;
    reduce(2);
}

/* A signal that comes in a call, on a stack that may lie above the thread's: what its handler calls
 * is part of that call. */
static void reduce_on_signal(int number)
{
    (void)number;
    reduce(3);
}

static void *wait_for_signal(void *unused)
{
    at_wait = STAYS;
    for (int i = 0; i < 1000; i++)
        EXPECT(!pthread_kill(pthread_self(), SIGUSR1));
    return unused;
}

static void calls_in_handler(void)
{
    static char stack[1 << 16];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = reduce_on_signal, .sa_flags = SA_ONSTACK};
    begin();
    EXPECT(!sigaltstack(&own, NULL) && !sigaction(SIGUSR1, &action, NULL));
    reduce(1);
    wait_for_signal(NULL);
    leave_wait();
    reduce(2);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {
        {"clears_environment", clears_environment},
        {"replaces_environment", replaces_environment},
        {"own_environment", own_environment},
        {"closed_streams", closed_streams},
        {"closes_all", closes_all},
        {"broken_pipe", broken_pipe},
        {"full_pipe", full_pipe},
        {"small_stack", small_stack},
        {"counts_children", counts_children},
        {"blocks_signals", blocks_signals},
        {"no_files", no_files},
        {"few_files", few_files},
        {"small_files", small_files},
        {"small_memory", small_memory},
        {"no_processes", no_processes},
        {"undumpable", undumpable},
        {"lost_directory", lost_directory},
        {"cancels_thread", cancels_thread},
        {"jumps_out_of_call", jumps_out_of_call},
        {"ends_in_call", ends_in_call},
        {"calls_in_handler", calls_in_handler},
    };
    if (argc == 2 && !strcmp(argv[1], "no_arguments")) { /* this program again, with argc 0 */
        char *const none[] = {NULL};
        execve("/proc/self/exe", none, environ);
        return 8;
    }
    if (argc == 0 || !*argv[0]) {
        begin();
        reduce(1);
    }
    for (size_t i = 0; argc == 2 && i < sizeof programs / sizeof *programs; i++)
        if (!strcmp(argv[1], programs[i].name))
            programs[i].run();
    printf("ok\n");
    return 0;
}
