/* by_value.h: where the structs that PyTorch passes to its kernels by value have addresses. */
#ifndef DDPCHECK_BY_VALUE_H
#define DDPCHECK_BY_VALUE_H

#include <stdint.h>

/* The addresses in a parameter. */
struct by_value {
    uint32_t offset, count; /* count 0: not known */
    uint32_t written;       /* bit i: the kernel may write through the i-th */
    uint32_t step;          /* from one to the next */
    uint32_t inputs_end;    /* bytes of the struct whose pointers are only read; what follows is
                               not known */
};

/* By the kernel's mangled name and the parameter's size. */
struct by_value by_value_addresses(const char *name, uint32_t bytes);

#endif
