/* twins.h: what the files of kernels/cpu share. Each KERNEL of kernels.def and ELEMENT of
 * elementwise.def is a function twin_<name>, called as kernels/twin.h specifies: args[i] points to
 * parameter i. */
#ifndef DDPCHECK_KERNELS_TWINS_H
#define DDPCHECK_KERNELS_TWINS_H

#include "kernels/twin.h"

#include <stddef.h>

/* Declares a variable with the value of the next parameter; for functions with `args`. */
#define TAKE(type, name) type name = *(type const *)*args++

#define KERNEL(name, letters) void twin_##name(const struct twin_grid *grid, void *const *args);

#define ELEMENT(name, letters, body, ...)        KERNEL(name, letters)
#define ELEMENT_KERNEL(name, letters, body, ...) KERNEL(name, letters)
#include "kernels/kernels.def"
#include "kernels/elementwise.def"
#undef KERNEL
#undef ELEMENT
#undef ELEMENT_KERNEL

/* Memory of the calling thread, valid until its next call of scratch_take. It grows to the largest
 * request and is freed when the thread ends. Aborts, with a message, if there is none: a twin can't
 * return an error, and going on would compute something wrong. */
float *scratch_take(size_t floats);

#endif
