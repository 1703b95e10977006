/* module.h: device code that programs load themselves. A CUmodule, a CUlibrary and a cudaLibrary_t
 * are one thing here, as are their kernels and functions (kernel.h). Thread-safe. */
#ifndef DDPCHECK_EMU_MODULE_H
#define DDPCHECK_EMU_MODULE_H

#include <stddef.h>

struct emu_module;
struct emu_kernel;

/* Into a context (device.h), or as a library, whose kernels run in any (NULL). Returns 0, why the
 * image does not fit (image.h), cudaErrorInvalidKernelImage or cudaErrorMemoryAllocation. */
int emu_module_load(const void *image, const void *context, struct emu_module **module);
int emu_module_load_file(const char *path, const void *context, struct emu_module **module);
/* True if it was loaded. Its kernels are gone then; launches under way end. */
int emu_module_unload(struct emu_module *module);
/* True for a module that is loaded. */
int emu_module_known(const struct emu_module *module);
/* The kernel of this (mangled) name. Returns 0, cudaErrorInvalidResourceHandle or
 * cudaErrorSymbolNotFound. Of a compressed image, whose names can't be read, it is any kernel that
 * has a twin. */
int emu_module_kernel(struct emu_module *module, const char *name, struct emu_kernel **kernel);
/* How many there are, and up to `room` of them. */
size_t emu_module_kernels(const struct emu_module *module, struct emu_kernel **kernels,
                          size_t room);

#endif
