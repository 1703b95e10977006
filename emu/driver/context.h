/* context.h: contexts. A device has its primary context; one that a program creates shares
 * memory and the default stream with it; streams, events and modules belong to one of them. */
#ifndef DDPCHECK_EMU_CONTEXT_H
#define DDPCHECK_EMU_CONTEXT_H

#include <cuda.h>

struct emu_device;
struct emu_stream;

/* The device's primary context. NULL: no memory. */
CUcontext context_primary(struct emu_device *device);
/* The device of a live context, or NULL. */
struct emu_device *context_device(CUcontext context);

/* The calling thread's current context, or NULL. */
CUcontext context_here(void);
/* The context that the stream was created in; of a default stream: the current one. */
CUcontext context_of_stream(const struct emu_stream *stream);

#endif
