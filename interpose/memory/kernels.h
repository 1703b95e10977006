/* kernels.h: the name of a kernel, and where among its parameters pointers may lie. */
#ifndef DDPCHECK_KERNELS_H
#define DDPCHECK_KERNELS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "interpose/memory/known_kernels.h"
#include "interpose/memory/mangled.h"
#include "interpose/memory/by_value.h"
#include "interpose/memory/tensor_lists.h"

struct shim_thread;

enum { KERNEL_PARAMETERS = 32, KERNELS_MAX = 4096 };

/* How a launch names its kernel. */
enum kernel_kind {
    KERNEL_SYMBOL,  /* host address of the kernel's stub, or what the runtime takes for it */
    KERNEL_HANDLE,  /* cudaKernel_t */
    KERNEL_FUNCTION /* CUfunction, or a CUkernel in its place */
};

struct kernel {
    _Atomic(const void *) function; /* the launch's; NULL: free entry */
    _Atomic uint32_t ready;         /* 1 when the fields below are valid */
    uint32_t epoch;                 /* of kernels.c: an older one may be of another kernel by now */
    uint32_t count;                 /* parameters below */
    bool whole;    /* these are all, and of each it is known where pointers may lie */
    uint64_t name; /* string id, 0 not known */
    struct known_kernel known;
    struct {
        uint32_t offset, bytes;    /* offset: in an argument block */
        uint8_t kind;              /* enum mangled_kind */
        bool reads;                /* of a class: nothing is written through its pointers */
        struct by_value addresses; /* of a class, if that is known */
        struct tensor_lists lists; /* of a class, if they are known */
    } parameter[KERNEL_PARAMETERS];
};

/* The kernel; CUDA is queried the first time. NULL if the table is full. */
const struct kernel *kernels_find(struct shim_thread *thread, const void *function,
                                  enum kernel_kind kind);

/* Device code is about to be unloaded: handles may come to mean other kernels. */
void kernels_forget(void);

/* In the child of a fork. */
void kernels_forked(void);

#endif
