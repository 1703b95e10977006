/* known_kernels.h: kernels of libraries whose structs of pointers have a known layout. */
#ifndef DDPCHECK_KNOWN_KERNELS_H
#define DDPCHECK_KNOWN_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* What a kernel does with its pointers, or with those that it is given inside a struct. */
enum pointer_order {
    POINTERS_UNKNOWN,     /* each may be written */
    POINTERS_WRITES_FIRST /* the first is its output, the rest are inputs */
};

struct known_kernel {
    uint8_t order;   /* enum pointer_order */
    bool of_all;     /* the order is that of all its pointers, not only of those in a struct */
    uint8_t element; /* its first argument says how many elements lie from each pointer on, of so
                        many bytes each at least; 0: not known */
};

/* By the mangled name; all zero for any other kernel. */
struct known_kernel known_kernel_find(const char *name);

#endif
