/* kernel.h: the kernels that programs register, and their launches.
 *
 * nvcc's host code names every kernel by the address of its host stub and its mangled name. The
 * work is done by the C twin of the same name (kernels/twin.h) out of libddpcheck_twins.so, which
 * lies beside the emulated libraries, or the file that DDPCHECK_EMU_TWINS names. */
#ifndef DDPCHECK_EMU_KERNEL_H
#define DDPCHECK_EMU_KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "emu/core/device.h"
#include "kernels/twin.h"

enum { EMU_MAX_PARAMETERS = 64, EMU_MAX_PARAMETER_BYTES = 32764, EMU_PARAMETERS_UNKNOWN = -1 };

struct emu_image_kernel;
struct emu_stream;

struct emu_parameter {
    size_t offset, bytes; /* in the argument block, aligned as C aligns them */
    bool pointer;         /* as far as it is known: the twin says so */
};

struct emu_kernel {
    struct emu_kernel *next;
    const void *module;        /* who registered it */
    const void *host_function; /* or NULL */
    const void *context;       /* of its module (device.h); NULL: whatever its stream's is */
    char *mangled, *name;
    atomic_uint_fast64_t loaded[EMU_MAX_DEVICES / 64]; /* bit d: on device d */
    const void *image; /* the registered fat binary that it is in, or NULL */
    atomic_bool looked_up;
    int misfit;              /* why no device runs it (emu_image_misfit), or 0 */
    const struct twin *twin; /* NULL: a launch does nothing */
    size_t parameter_count;  /* of the twin, or else as the device code says */
    struct emu_parameter parameters[EMU_MAX_PARAMETERS];
};

/* A kernel that nvcc's host code registers; `image` (may be NULL) must last as long as the module.
 * Returns 0 or cudaErrorMemoryAllocation. */
int emu_kernel_register(const void *module, const void *host_function, const char *mangled,
                        const void *image);
/* A kernel of a module that the program loaded. Returns the same. */
int emu_kernel_load(const void *module, const void *context, const struct emu_image_kernel *found);
void emu_kernel_unregister(const void *module);
/* The module's kernel of this mangled name, or NULL. */
struct emu_kernel *emu_kernel_named(const void *module, const char *mangled);
/* How many kernels the module has, and up to `room` of them. */
size_t emu_kernel_of_module(const void *module, struct emu_kernel **kernels, size_t room);
/* By the host stub's address, or by a handle that is such a kernel already; NULL if neither. The
 * twin is looked up, and the device code. */
struct emu_kernel *emu_kernel_find(const void *function);
/* 0, or why no device runs it (emu_image_misfit); prints what to set. */
int emu_kernel_misfit(const struct emu_kernel *kernel);
/* The same by a handle; `unknown` if there is no such kernel. */
int emu_kernel_check(const void *function, int unknown);

/* Launches; the arguments are copied at once. Without args, `block` holds them laid out by the
 * parameters' offsets (CU_LAUNCH_PARAM_BUFFER_POINTER). Returns a cudaError_t. */
int emu_kernel_launch(struct emu_kernel *kernel, const struct twin_grid *grid, void *const *args,
                      const void *block, struct emu_stream *stream);

/* kernel_name.c: "conv2d_forward" of "_Z14conv2d_forwardPf...", to be freed, or NULL. */
char *emu_kernel_base_name(const char *mangled);
/* Lays out a twin's parameter letters. Returns their number, or -1 if they can't be read. */
int emu_kernel_lay_out(const char *letters, struct emu_parameter *parameters);
/* pytorch.c: the twin of this kernel of PyTorch, by its mangled name and the bytes of its first
 * parameter (0 if the device code doesn't show them), or NULL. */
const struct twin *emu_pytorch_find(const char *mangled, size_t bytes);
/* The twin named `name`, or NULL. */
const struct twin *emu_twin_find(const char *name);
/* Runs it on the calling (stream's) thread; does nothing once the process is in exit(). */
void emu_twin_run(const struct twin *twin, const struct twin_grid *grid, void *const *args);

/* Lazy loading of kernels, which CUDA does by default since 12.2 and the emulated machine
 * with DDPCHECK_EMU_LAZY_LOADING=1, unless CUDA_MODULE_LOADING=EAGER: what first uses a kernel on a
 * device waits for all work there, as loading may (CUDA programming guide, "Lazy Loading"). */

struct emu_device;
struct emu_kernel;
struct emu_stream;

bool emu_loads_lazily(void);
bool emu_kernel_is_loaded(const struct emu_kernel *kernel, const struct emu_device *device);
/* Loads it if it is not yet. Returns 0 or the device's error. */
int emu_kernel_make_loaded(struct emu_kernel *kernel, struct emu_device *device);

#endif
