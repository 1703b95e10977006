/* peek.c: see peek.h. */
#include "lib/python/peek.h"

#include <fcntl.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int other_pid;        /* 0: this process */
static int memory_file = -1; /* /proc/self/mem where process_vm_readv is forbidden */

bool peek(uint64_t address, void *to, size_t bytes)
{
    if (memory_file >= 0)
        return pread(memory_file, to, bytes, (off_t)address) == (ssize_t)bytes;
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(other_pid ? other_pid : getpid(), &here, 1, &there, 1, 0) ==
           (ssize_t)bytes;
}

void peek_at(int pid)
{
    other_pid = pid;
}

bool peek_start(void)
{
    static const uint64_t probe = 0x5079746865637921u;
    uint64_t value = 0;
    if (memory_file >= 0) /* a fork's parent's */
        close(memory_file);
    memory_file = -1;
    if (peek((uintptr_t)&probe, &value, sizeof value) && value == probe)
        return true;
    memory_file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    return memory_file >= 0 && peek((uintptr_t)&probe, &value, sizeof value) && value == probe;
}
