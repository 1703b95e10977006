/* live_locks.c: which thread holds the mutex that another one waits for. */
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "lib/live/live_internal.h"

/* glibc's mutex: a word, a count, and the thread that has it. */
struct mutex_words {
    uint32_t word, count, owner;
};

/* pthread_mutex_lock waits until the word is no longer 2. */
enum { TAKEN_AND_WAITED_FOR = 2 };

/* Where the system call waits, if it can be a wait for a mutex; else 0. */
static uint64_t mutex_waited_for(const char *text)
{
    unsigned long long address, operation, value;
    long number;
    if (sscanf(text, "%ld %llx %llx %llx", &number, &address, &operation, &value) != 4)
        return 0;
    bool waits = number == SYS_futex && (operation & FUTEX_CMD_MASK) == FUTEX_WAIT &&
                 (uint32_t)value == TAKEN_AND_WAITED_FOR;
    return waits ? address : 0;
}

uint32_t live_mutex_holder(int pid, const char *system_call)
{
    struct mutex_words mutex;
    uint64_t address = mutex_waited_for(system_call);
    struct iovec here = {&mutex, sizeof mutex}, there = {(void *)(uintptr_t)address, sizeof mutex};
    if (!address || process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof mutex)
        return 0;
    return mutex.word == TAKEN_AND_WAITED_FOR ? mutex.owner : 0;
}
