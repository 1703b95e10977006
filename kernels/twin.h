/* twin.h: how the C twins of the CUDA kernels are found and called.
 *
 * Each __global__ function of kernels/cuda has a twin of the same name and parameters in
 * kernels/cpu. A twin does the work of the whole grid at once: it may ignore how the grid is cut
 * and use whatever is fast on a CPU. It is also the oracle in the kernel's numeric test. */
#ifndef DDPCHECK_TWIN_H
#define DDPCHECK_TWIN_H

#include <stddef.h>

struct twin;

struct twin_grid {
    unsigned grid[3], block[3];
    size_t shared_bytes;
    const struct twin *twin; /* the one that runs, for functions that several twins share */
};

struct twin {
    const char *name; /* of the __global__ function, not mangled */
    /* One letter for each parameter, in order: p pointer to memory that is read, P pointer to
     * memory that is written (or read and written), i 4 bytes, l 8 bytes, f float, d double, or a
     * number in brackets for a struct of that many bytes without pointers: "pP[40]if". */
    const char *params;
    void (*run)(const struct twin_grid *grid,
                void *const *args); /* args[i] points to parameter i */
};

/* The table of the library, ended by a NULL name. */
extern const struct twin kernels_twins[];

#endif
