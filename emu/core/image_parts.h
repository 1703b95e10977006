/* image_parts.h: what reads the parts of a device code image (image.h): cubins and PTX text. */
#ifndef DDPCHECK_EMU_IMAGE_PARTS_H
#define DDPCHECK_EMU_IMAGE_PARTS_H

#include <stdint.h>

#include "emu/core/image.h"

struct image_visit {
    bool (*each)(void *arg, const struct emu_image_kernel *kernel);
    void *arg;
    bool stopped, packed;
};

/* Passes a kernel on, unless the visit was stopped. */
void image_visit_kernel(struct image_visit *visit, const struct emu_image_kernel *kernel);

/* image_unpack.c. Unpacks exactly `room` bytes. False if the block is damaged or has another
 * length; of zstd also where the machine has no libzstd.so.1. */
bool image_unpack_lz4(const void *packed, size_t bytes, void *to, size_t room);
bool image_unpack_zstd(const void *packed, size_t bytes, void *to, size_t room);

/* image_cubin.c. False if it is no cubin. */
bool image_read_cubin(struct image_visit *visit, const char *image);
/* 90 for compute capability 9.0; 0 if the cubin does not say. */
unsigned image_cubin_architecture(const char *image);

/* image_ptx.c. False if it is no PTX. */
bool image_read_ptx(struct image_visit *visit, const char *text);

#endif
