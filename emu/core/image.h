/* image.h: the kernels in a device code image: a cubin (ELF), PTX text, or a fat binary of them.
 * The code itself is not used here. Forms as nvcc 13 writes them (fatbinary_section.h for the
 * wrapper; the rest as seen in its output). */
#ifndef DDPCHECK_EMU_IMAGE_H
#define DDPCHECK_EMU_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "emu/core/kernel.h"

enum emu_image { EMU_IMAGE_NONE, EMU_IMAGE_LISTED, EMU_IMAGE_PACKED };

struct emu_image_kernel {
    const char *name; /* mangled; need not end in NUL */
    size_t length;
    int count; /* of parameters, or EMU_PARAMETERS_UNKNOWN */
    struct emu_parameter parameters[EMU_MAX_PARAMETERS];
};

/* Calls `each` with every kernel, which returns false to stop. A fat binary has a kernel once for
 * each architecture. EMU_IMAGE_NONE: no image. EMU_IMAGE_PACKED: some parts are compressed and not
 * listed. */
enum emu_image emu_image_kernels(const void *image,
                                 bool (*each)(void *arg, const struct emu_image_kernel *kernel),
                                 void *arg);

/* The fat binary of what nvcc's host code registers (__cudaRegisterFatBinary), or NULL. */
const void *emu_image_registered(const void *wrapper);

/* 0, or why the driver and a device of this architecture (90: compute capability 9.0) can't use the
 * image: cudaErrorUnsupportedPtxVersion, cudaErrorNoKernelImageForDevice. */
int emu_image_misfit(const void *image, unsigned architecture);
/* The image's architectures of machine code: `each` with those of its parts. */
void emu_image_architectures(const void *image, void (*each)(void *arg, unsigned architecture),
                             void *arg);

#endif
