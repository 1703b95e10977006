/* libc.h: which C library the process has.
 *
 * A job of glibc's may start helpers that are linked with musl, and LD_PRELOAD reaches them. The
 * shim is loaded there, stays dormant, and passes calls on: no NCCL exists for musl. What musl
 * lacks of glibc is declared weak here, so that its loader accepts the shim. */
#ifndef DDPCHECK_LIBC_H
#define DDPCHECK_LIBC_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

/* clone(2) by the C library's own name: ThreadSanitizer takes every clone() for a fork, also of a
 * child that shares the memory, and then ends the program at its next thread. */
extern int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

#pragma weak __clone
#pragma weak dlvsym
#pragma weak on_exit

static inline bool libc_is_glibc(void)
{
    return dlvsym != NULL;
}

/* A function of another C library by its name, before there is a dlsym; NULL: there is none. */
void *libc_find(const char *symbol);

#endif
