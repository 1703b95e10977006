/* waits: blocks in one system call after the other while somebody keeps asking where this thread
 * stands, in each until it was asked there: DDPCHECK_TEST_ROUNDS is the file with how many times.
 * None may return early, or with EINTR, because of it. Prints each call that did, and "done". */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <fcntl.h>
#include <nccl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 300 };

static const struct timespec wait_time = {.tv_nsec = WAIT_MS * 1000000};
static int pipe_ends[2], sockets[2];

static struct timespec deadline(void)
{
    struct timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_nsec += wait_time.tv_nsec;
    when.tv_sec += when.tv_nsec / 1000000000;
    when.tv_nsec %= 1000000000;
    return when;
}

static int sleeps(void)
{
    return nanosleep(&wait_time, NULL);
}
static int polls(void)
{
    return poll(NULL, 0, WAIT_MS);
}
static int selects(void)
{
    return select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = WAIT_MS * 1000});
}
static int waits_for_epoll(void)
{
    struct epoll_event event;
    return epoll_wait(epoll_create1(0), &event, 1, WAIT_MS);
}
static int receives(void)
{
    char byte;
    return recv(sockets[0], &byte, 1, 0) == -1 && errno == EAGAIN ? 0 : -1;
}
static int reads_socket(void)
{
    char byte;
    return read(sockets[0], &byte, 1) == -1 && errno == EAGAIN ? 0 : -1;
}
static int reads_pipe(void)
{
    char byte;
    return read(pipe_ends[0], &byte, 1) == 1 ? 0 : -1;
}
static int waits_for_child(void)
{
    return wait(NULL) > 0 ? 0 : -1;
}

static int waits_for_semaphore(void)
{
    sem_t semaphore;
    struct timespec when = deadline();
    sem_init(&semaphore, 0, 0);
    return sem_timedwait(&semaphore, &when) == -1 && errno == ETIMEDOUT ? 0 : -1;
}

static int waits_for_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return sigtimedwait(&set, NULL, &wait_time) == -1 && errno == EAGAIN ? 0 : -1;
}

static void *join_me(void *unused)
{
    nanosleep(&wait_time, NULL);
    return unused;
}

static int joins(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, join_me, NULL) || pthread_join(thread, NULL);
}

/* With the signal blocked, or in an interrupted loop, it must end as well. */
static int spins(void)
{
    struct timespec now, begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < WAIT_MS);
    return 0;
}

static int blocks_signals(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int result = nanosleep(&wait_time, NULL) || spins();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static const struct {
    const char *name;
    int (*wait)(void);
} waits[] = {
    {"nanosleep", sleeps},
    {"poll", polls},
    {"select", selects},
    {"epoll_wait", waits_for_epoll},
    {"recv", receives},
    {"read of a socket", reads_socket},
    {"read of a pipe", reads_pipe},
    {"wait", waits_for_child},
    {"sem_timedwait", waits_for_semaphore},
    {"sigtimedwait", waits_for_signal},
    {"pthread_join", joins},
    {"a loop", spins},
    {"with signals blocked", blocks_signals},
};

static void prepare(void)
{
    struct timeval limit = {.tv_usec = WAIT_MS * 1000};
    if (pipe(pipe_ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
        _exit(3);
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

/* A child that writes to the pipe after a while, for those that wait for it. */
static void start_child(void)
{
    if (fork() == 0) {
        nanosleep(&wait_time, NULL);
        _exit(write(pipe_ends[1], "x", 1) != 1);
    }
}

static const _Atomic uint32_t *map_rounds(void)
{
    const char *path = getenv("DDPCHECK_TEST_ROUNDS");
    int fd = path ? open(path, O_RDONLY) : -1;
    void *rounds = mmap(NULL, sizeof(uint32_t), PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || rounds == MAP_FAILED)
        _exit(4);
    close(fd);
    return rounds;
}

static void wait_once(unsigned i)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (waits[i].wait == reads_pipe || waits[i].wait == waits_for_child)
        start_child();
    errno = 0;
    int result = waits[i].wait();
    int error = errno;
    clock_gettime(CLOCK_MONOTONIC, &end);
    long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
    if (result || ms < WAIT_MS - 20)
        printf("%s returned %d (%s) after %ld ms\n", waits[i].name, result, strerror(error), ms);
    if (waits[i].wait == reads_pipe)
        wait(NULL);
}

int main(void)
{
    ncclComm_t comm;
    int device = 0;
    const _Atomic uint32_t *rounds = map_rounds();
    prepare();
    if (cudaSetDevice(device) || ncclCommInitAll(&comm, 1, &device))
        return 2;
    for (unsigned i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        uint32_t before;
        do {
            before = atomic_load(rounds);
            wait_once(i);
        } while (atomic_load(rounds) - before < 2); /* else none began and ended meanwhile */
    }
    ncclCommDestroy(comm);
    puts("done");
    return 0;
}
