/* library.c: device code that programs load themselves. */
#include "emu/core/kernel.h"
#include "emu/core/module.h"
#include "emu/cudart/call.h"

CALL(cudaLibraryLoadData,
     (cudaLibrary_t * library, const void *image, enum cudaJitOption *options, void **values,
      unsigned int count, enum cudaLibraryOption *library_options, void **library_values,
      unsigned int library_count),
     (library, image, options, values, count, library_options, library_values, library_count))
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values,
        (void)library_count;
    return library && image ? emu_module_load(image, NULL, (struct emu_module **)library)
                            : (int)cudaErrorInvalidValue;
}

CALL(cudaLibraryLoadFromFile,
     (cudaLibrary_t * library, const char *path, enum cudaJitOption *options, void **values,
      unsigned int count, enum cudaLibraryOption *library_options, void **library_values,
      unsigned int library_count),
     (library, path, options, values, count, library_options, library_values, library_count))
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values,
        (void)library_count;
    return library && path ? emu_module_load_file(path, NULL, (struct emu_module **)library)
                           : (int)cudaErrorInvalidValue;
}

CALL(cudaLibraryUnload, (cudaLibrary_t library), (library))
{
    return emu_module_unload((struct emu_module *)library) ? cudaSuccess
                                                           : cudaErrorInvalidResourceHandle;
}

CALL(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char *name),
     (kernel, library, name))
{
    if (!kernel || !name)
        return cudaErrorInvalidValue;
    return emu_module_kernel((struct emu_module *)library, name, (struct emu_kernel **)kernel);
}

CALL(cudaLibraryGetKernelCount, (unsigned int *count, cudaLibrary_t library), (count, library))
{
    if (!count || !emu_module_known((struct emu_module *)library))
        return count ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
    *count = (unsigned)emu_module_kernels((struct emu_module *)library, NULL, 0);
    return cudaSuccess;
}

CALL(cudaLibraryEnumerateKernels,
     (cudaKernel_t * kernels, unsigned int room, cudaLibrary_t library), (kernels, room, library))
{
    if (!kernels || !emu_module_known((struct emu_module *)library))
        return kernels ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
    emu_module_kernels((struct emu_module *)library, (struct emu_kernel **)kernels, room);
    return cudaSuccess;
}
