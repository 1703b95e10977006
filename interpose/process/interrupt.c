/* interrupt.c: gets the native stack of another thread by a signal, or from outside. */
#include "interpose/process/interrupt.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "interpose/ring/files.h"
#include "interpose/stacks/frames.h"
#include "interpose/stacks/stacks.h"
#include "interpose/shim/thread.h"
#include "lib/python/peek.h"

enum { WAIT_MS = 200, WORK_MS = 2000, SYSCALL_ARGUMENTS = 6 };

enum request_state { REQUEST_NONE, REQUEST_SENT, REQUEST_WORKING, REQUEST_DONE };

/* One request at a time. A handler that comes too late finds it withdrawn, and does nothing. */
static struct {
    _Atomic uint32_t state; /* enum request_state */
    _Atomic uint32_t thread;
    uint32_t count;
    uint64_t address[STACK_FRAMES];
    int signal; /* ours once it is not 0; the handler stays in the child of a fork */
} request;

void interrupt_forked(void)
{
    atomic_store(&request.state, REQUEST_NONE);
}

static uint64_t interrupted_at(const void *context)
{
#if defined(__x86_64__)
    return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return ((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void handle_signal(int signal_number, siginfo_t *info, void *context)
{
    int error = errno;
    uint32_t expected = REQUEST_SENT;
    (void)signal_number;
    if (info->si_code == SI_TKILL &&
        atomic_load(&request.thread) == (uint32_t)syscall(SYS_gettid) &&
        atomic_compare_exchange_strong(&request.state, &expected, REQUEST_WORKING)) {
        request.count = stacks_walk(interrupted_at(context), request.address, STACK_FRAMES);
        atomic_store(&request.state, REQUEST_DONE);
    }
    errno = error;
}

/* A signal that the program does not use, from the highest but one down (the highest are popular).
 * The handler stays: a signal that is still on its way must not find the default action, which ends
 * the process. */
static bool has_signal(void)
{
    struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    ours.sa_sigaction = handle_signal;
    sigfillset(&ours.sa_mask);
    if (request.signal && !sigaction(request.signal, NULL, &now) &&
        now.sa_sigaction == handle_signal)
        return true;
    for (request.signal = SIGRTMAX - 2; request.signal > SIGRTMIN + 1; request.signal--)
        if (!sigaction(request.signal, NULL, &now) && now.sa_handler == SIG_DFL &&
            !(now.sa_flags & SA_SIGINFO) && !sigaction(request.signal, &ours, NULL))
            return true;
    request.signal = 0;
    return false;
}

static bool blocks_signal(uint32_t thread)
{
    char path[64], status[4096];
    snprintf(path, sizeof path, "/proc/self/task/%u/status", thread);
    const char *mask = file_read(path, status, sizeof status) > 0 ? strstr(status, "SigBlk:")
                                                                  : NULL;
    return !mask || strtoull(mask + strlen("SigBlk:"), NULL, 16) >> (request.signal - 1) & 1;
}

struct thread_position {
    int64_t syscall;
    uint64_t argument[SYSCALL_ARGUMENTS];
    uint64_t stack_pointer, address; /* innermost; 0 not known */
};

/* "running", "-1 SP PC" (stopped outside a system call) or "NUMBER ARGUMENTS SP PC". */
static void read_position(uint32_t thread, struct thread_position *position)
{
    char path[64], text[512], *at = text;
    *position = (struct thread_position){.syscall = SYSCALL_UNKNOWN};
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", thread);
    if (file_read(path, text, sizeof text) <= 0)
        return;
    if (!strncmp(text, "running", strlen("running"))) {
        position->syscall = SYSCALL_NONE;
        return;
    }
    position->syscall = strtoll(at, &at, 10);
    for (int i = 0; position->syscall >= 0 && i < SYSCALL_ARGUMENTS; i++)
        position->argument[i] = strtoull(at, &at, 16);
    position->stack_pointer = strtoull(at, &at, 16);
    position->address = strtoull(at, &at, 16);
    if (position->syscall < 0)
        position->syscall = SYSCALL_NONE;
}

/* Reads and writes of an inotify file or of a socket with a time limit are not taken up again. */
static bool is_plain_file(int fd)
{
    char link[64], to[64];
    struct timeval limit[2] = {{0, 0}, {0, 0}};
    socklen_t bytes = sizeof limit[0];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, to, sizeof to - 1);
    if (length <= 0)
        return false;
    to[length] = '\0';
    if (to[0] == '/' || !strncmp(to, "pipe:", strlen("pipe:")))
        return true;
    return !strncmp(to, "socket:", strlen("socket:")) &&
           !getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit[0], &bytes) &&
           !getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit[1], &bytes) && !limit[0].tv_sec &&
           !limit[0].tv_usec && !limit[1].tv_sec && !limit[1].tv_usec;
}

/* signal(7), "Interruption of system calls and library functions by signal handlers": those that
 * SA_RESTART always restarts. A wait with a time limit is not among them. */
static bool is_restarted(const struct thread_position *position)
{
    switch (position->syscall) {
    case SYSCALL_NONE:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_flock:
    case SYS_sched_yield:
        return true;
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
        return is_plain_file((int)position->argument[0]);
    case SYS_futex: {
        int command = (int)position->argument[1] & FUTEX_CMD_MASK;
        return (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
                command == FUTEX_LOCK_PI) &&
               position->argument[3] == 0;
    }
    default:
        return false;
    }
}

static void pause_ms(int milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000l}, NULL);
}

/* The processor time that the thread has had, which the kernel brings up to date at each of its
 * ticks (proc(5), schedstat). Empty: the kernel does not say. */
static void read_run_time(uint32_t thread, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", thread);
    *text = '\0';
    if (file_read(path, text, bytes) > 0)
        text[strcspn(text, " ")] = '\0';
}

/* A thread that runs may be about to wait: only one that keeps running counts as running. One that
 * waits for a processor has not left the call yet that it was in, which a signal would end with
 * EINTR. */
static void find_position(uint32_t thread, struct thread_position *position)
{
    enum { READS = 4, READS_MOST = 16 /* ms: a tick lasts 10 ms at most */ };
    char before[64], now[64];
    bool has_run = false;
    read_run_time(thread, before, sizeof before);
    read_position(thread, position);
    for (int i = 1; i < READS_MOST && (i < READS || !has_run) && position->syscall == SYSCALL_NONE;
         i++) {
        pause_ms(1);
        read_run_time(thread, now, sizeof now);
        has_run = !*before || strcmp(before, now) != 0;
        read_position(thread, position);
    }
    if (position->syscall == SYSCALL_NONE && !has_run)
        position->syscall = SYSCALL_UNKNOWN;
}

static bool wait_for_state(uint32_t state, int milliseconds)
{
    for (; milliseconds > 0 && atomic_load(&request.state) != state; milliseconds--)
        pause_ms(1);
    return atomic_load(&request.state) == state;
}

static uint32_t request_stack(uint32_t thread, uint64_t *address, uint32_t max)
{
    uint32_t expected = REQUEST_NONE;
    atomic_store(&request.thread, thread);
    if (!atomic_compare_exchange_strong(&request.state, &expected, REQUEST_SENT))
        return 0; /* the last one is still unwinding: interrupt none any more */
    if (syscall(SYS_tgkill, getpid(), thread, request.signal)) {
        atomic_store(&request.state, REQUEST_NONE);
        return 0;
    }
    if (!wait_for_state(REQUEST_DONE, WAIT_MS)) {
        expected = REQUEST_SENT;
        if (atomic_compare_exchange_strong(&request.state, &expected, REQUEST_NONE) ||
            !wait_for_state(REQUEST_DONE, WORK_MS))
            return 0;
    }
    uint32_t count = request.count < max ? request.count : max;
    memcpy(address, request.address, count * sizeof *address);
    atomic_store(&request.state, REQUEST_NONE);
    return count;
}

/* pthread_mutex_lock of glibc waits until the word is no longer 2, "taken and waited for"; a count
 * and the thread that has it follow. Read through the kernel: the mutex may be gone. */
static uint32_t read_holder(const struct thread_position *position)
{
    enum { TAKEN_AND_WAITED_FOR = 2 };
    struct {
        uint32_t word, count, owner;
    } mutex;
    bool waits = position->syscall == SYS_futex &&
                 (position->argument[1] & FUTEX_CMD_MASK) == FUTEX_WAIT &&
                 (uint32_t)position->argument[2] == TAKEN_AND_WAITED_FOR;
    if (!waits || !peek(position->argument[0], &mutex, sizeof mutex))
        return 0;
    return mutex.word == TAKEN_AND_WAITED_FOR ? mutex.owner : 0;
}

uint32_t interrupt_walk(uint32_t thread, bool may_interrupt, uint64_t *address, uint32_t max,
                        struct interrupted *state)
{
    struct thread_position position;
    find_position(thread, &position);
    *state = (struct interrupted){.syscall = position.syscall, .holder = read_holder(&position)};
    uint32_t count = 0;
    if (may_interrupt && is_restarted(&position) && has_signal() && !blocks_signal(thread))
        count = request_stack(thread, address, max);
    state->walked = count > 0;
    if (count == 0 && position.address)
        count = frames_walk(position.address, position.stack_pointer, address, max);
    return count;
}
