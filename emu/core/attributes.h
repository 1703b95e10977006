/* attributes.h: the attributes of the virtual device. Numbers are cudaDeviceAttr, which are those
 * of CUdevice_attribute too. But for its compute capability (architecture.h) the device passes for
 * one of 9.0, so that programs take their usual paths, without what the emulated machine can't do
 * (IPC of events, textures, multicast). */
#ifndef DDPCHECK_EMU_ATTRIBUTES_H
#define DDPCHECK_EMU_ATTRIBUTES_H

#include <stddef.h>

struct emu_device;

/* The version of the driver API that libcuda.so.1 stands for: 13000, or what
 * DDPCHECK_EMU_DRIVER_VERSION says. */
int emu_driver_version(void);
#define EMU_DEVICE_NAME "ddpcheck emulated GPU"

/* Returns 0 or cudaErrorInvalidValue. */
int emu_device_attribute(const struct emu_device *device, int attribute, int *value);

#endif
