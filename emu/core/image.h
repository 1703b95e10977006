/* image.h: the kernels in a device code image, by name: a cubin (ELF), PTX text, or a fat binary of
 * them. The code itself is not used here. Forms as nvcc 13 writes them (fatbinary_section.h for
 * the wrapper; the rest as seen in its output). */
#ifndef DDPCHECK_EMU_IMAGE_H
#define DDPCHECK_EMU_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

enum emu_image { EMU_IMAGE_NONE, EMU_IMAGE_LISTED, EMU_IMAGE_PACKED };

/* Calls `each` with every kernel's (mangled) name, which need not end in NUL. It returns false to
 * stop. EMU_IMAGE_NONE: no image. EMU_IMAGE_PACKED: some parts are compressed and not listed. */
enum emu_image emu_image_kernels(const void *image,
                                 bool (*each)(void *arg, const char *name, size_t length),
                                 void *arg);

/* 0, or why the driver and the device can't use the image: cudaErrorUnsupportedPtxVersion,
 * cudaErrorNoKernelImageForDevice. */
int emu_image_misfit(const void *image);

#endif
