/* peek.h: reads a process's memory through the kernel: a wrong address is an error and not a crash.
 * Needs libc alone: the shim is built from it, too. */
#ifndef DDPCHECK_PEEK_H
#define DDPCHECK_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds a way: process_vm_readv on ourselves, else /proc/self/mem. Returns false if there is none.
 * To be called once in each process, before other threads may peek. */
bool peek_start(void);

/* From now on peek reads the memory of another process, where the kernel allows it (as it allows
 * ptrace: the same user and no Yama, a parent, or CAP_SYS_PTRACE). For tools that are one thread.
 */
void peek_at(int pid);

/* Copies [address, address+bytes). Returns false if not all of it can be read. */
bool peek(uint64_t address, void *to, size_t bytes);

#endif
