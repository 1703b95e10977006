/* context.h: contexts. A device has its primary context; one that a program creates shares
 * everything with it, it is only another name for the device. */
#ifndef DDPCHECK_EMU_CONTEXT_H
#define DDPCHECK_EMU_CONTEXT_H

#include <cuda.h>

struct emu_device;

/* The device's primary context. NULL: no memory. */
CUcontext context_primary(struct emu_device *device);
/* The device of a live context, or NULL. */
struct emu_device *context_device(CUcontext context);

#endif
