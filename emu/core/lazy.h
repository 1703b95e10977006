/* lazy.h: lazy loading of kernels, which CUDA does by default since 12.2 and the emulated machine
 * with DDPCHECK_EMU_LAZY_LOADING=1, unless CUDA_MODULE_LOADING=EAGER: what first uses a kernel on a
 * device waits for all work there, as loading may (CUDA programming guide, "Lazy Loading"). */
#ifndef DDPCHECK_EMU_LAZY_H
#define DDPCHECK_EMU_LAZY_H

#include <stdbool.h>

struct emu_device;
struct emu_kernel;
struct emu_stream;

bool emu_loads_lazily(void);
bool emu_kernel_is_loaded(const struct emu_kernel *kernel, const struct emu_device *device);
/* Loads it if it is not yet. Returns 0 or the device's error. */
int emu_kernel_make_loaded(struct emu_kernel *kernel, struct emu_device *device);

#endif
