/* interrupt.c: native stacks of other threads. See interrupt.h. */
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

#include "interpose/record/files.h"
#include "interpose/stacks/frames.h"
#include "interpose/stacks/stacks.h"
#include "interpose/record/thread.h"

enum { WAIT_MS = 200, WORK_MS = 2000, SYSCALL_ARGUMENTS = 6 };

enum question_state { QUESTION_NONE, QUESTION_ASKED, QUESTION_WORKING, QUESTION_ANSWERED };

/* One question at a time. A handler that comes too late finds it withdrawn, and does nothing. */
static struct question {
    _Atomic uint32_t state; /* enum question_state */
    _Atomic uint32_t thread;
    uint32_t count;
    uint64_t address[STACK_FRAMES];
} question;

static int signal_used; /* ours once it is not 0 */

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

static void answer(int signal_number, siginfo_t *info, void *context)
{
    int error = errno;
    uint32_t expected = QUESTION_ASKED;
    (void)signal_number;
    if (info->si_code == SI_TKILL &&
        atomic_load(&question.thread) == (uint32_t)syscall(SYS_gettid) &&
        atomic_compare_exchange_strong(&question.state, &expected, QUESTION_WORKING)) {
        question.count = stacks_walk(interrupted_at(context), question.address, STACK_FRAMES);
        atomic_store(&question.state, QUESTION_ANSWERED);
    }
    errno = error;
}

/* A signal that the program does not use, from the highest but one down (the highest are popular).
 * The handler stays: a signal that is still on its way must not find the default action, which ends
 * the process. */
static bool has_signal(void)
{
    struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    ours.sa_sigaction = answer;
    sigfillset(&ours.sa_mask);
    if (signal_used && !sigaction(signal_used, NULL, &now) && now.sa_sigaction == answer)
        return true;
    for (signal_used = SIGRTMAX - 2; signal_used > SIGRTMIN + 1; signal_used--)
        if (!sigaction(signal_used, NULL, &now) && now.sa_handler == SIG_DFL &&
            !(now.sa_flags & SA_SIGINFO) && !sigaction(signal_used, &ours, NULL))
            return true;
    signal_used = 0;
    return false;
}

static bool blocks_signal(uint32_t thread)
{
    char path[64], status[4096];
    snprintf(path, sizeof path, "/proc/self/task/%u/status", thread);
    const char *mask = file_read(path, status, sizeof status) > 0 ? strstr(status, "SigBlk:")
                                                                  : NULL;
    return !mask || strtoull(mask + strlen("SigBlk:"), NULL, 16) >> (signal_used - 1) & 1;
}

struct place {
    int64_t syscall;
    uint64_t argument[SYSCALL_ARGUMENTS];
    uint64_t stack_pointer, address; /* innermost; 0 not known */
};

/* "running", "-1 SP PC" (stopped outside a system call) or "NUMBER ARGUMENTS SP PC". */
static void read_place(uint32_t thread, struct place *place)
{
    char path[64], text[512], *at = text;
    *place = (struct place){.syscall = SYSCALL_UNKNOWN};
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", thread);
    if (file_read(path, text, sizeof text) <= 0)
        return;
    if (!strncmp(text, "running", strlen("running"))) {
        place->syscall = SYSCALL_NONE;
        return;
    }
    place->syscall = strtoll(at, &at, 10);
    for (int i = 0; place->syscall >= 0 && i < SYSCALL_ARGUMENTS; i++)
        place->argument[i] = strtoull(at, &at, 16);
    place->stack_pointer = strtoull(at, &at, 16);
    place->address = strtoull(at, &at, 16);
    if (place->syscall < 0)
        place->syscall = SYSCALL_NONE;
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
 * SA_RESTART takes up again always. A wait with a time limit is not among them. */
static bool is_restarted(const struct place *place)
{
    switch (place->syscall) {
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
        return is_plain_file((int)place->argument[0]);
    case SYS_futex: {
        int command = (int)place->argument[1] & FUTEX_CMD_MASK;
        return (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
                command == FUTEX_LOCK_PI) &&
               place->argument[3] == 0;
    }
    default:
        return false;
    }
}

static void pause_ms(int milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000l}, NULL);
}

/* A thread that runs may be about to wait: only one that keeps running is taken for one that does
 * nothing else. */
static void find_place(uint32_t thread, struct place *place)
{
    enum { LOOKS = 4 };
    read_place(thread, place);
    for (int i = 1; i < LOOKS && place->syscall == SYSCALL_NONE; i++) {
        pause_ms(1);
        read_place(thread, place);
    }
}

static bool wait_for(uint32_t state, int milliseconds)
{
    for (; milliseconds > 0 && atomic_load(&question.state) != state; milliseconds--)
        pause_ms(1);
    return atomic_load(&question.state) == state;
}

static uint32_t ask(uint32_t thread, uint64_t *address, uint32_t max)
{
    uint32_t expected = QUESTION_NONE;
    atomic_store(&question.thread, thread);
    if (!atomic_compare_exchange_strong(&question.state, &expected, QUESTION_ASKED))
        return 0; /* the last one is still at it: ask nobody any more */
    if (syscall(SYS_tgkill, getpid(), thread, signal_used)) {
        atomic_store(&question.state, QUESTION_NONE);
        return 0;
    }
    if (!wait_for(QUESTION_ANSWERED, WAIT_MS)) {
        expected = QUESTION_ASKED;
        if (atomic_compare_exchange_strong(&question.state, &expected, QUESTION_NONE) ||
            !wait_for(QUESTION_ANSWERED, WORK_MS))
            return 0;
    }
    uint32_t count = question.count < max ? question.count : max;
    memcpy(address, question.address, count * sizeof *address);
    atomic_store(&question.state, QUESTION_NONE);
    return count;
}

uint32_t interrupt_walk(uint32_t thread, bool may_interrupt, uint64_t *address, uint32_t max,
                        struct interrupted *state)
{
    struct place place;
    find_place(thread, &place);
    *state = (struct interrupted){.syscall = place.syscall};
    uint32_t count = 0;
    if (may_interrupt && is_restarted(&place) && has_signal() && !blocks_signal(thread))
        count = ask(thread, address, max);
    state->walked = count > 0;
    if (count == 0 && place.address)
        count = frames_walk(place.address, place.stack_pointer, address, max);
    return count;
}
