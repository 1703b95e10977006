/* module.c: modules and libraries, which are the same here but for the context that a module
 * belongs to. Both are loaded at once; their kernels may be loaded lazily (emu/core/kernel.h). */
#include "emu/core/module.h"

#include "emu/core/kernel.h"
#include "emu/driver/call.h"

static int load_driver_module(const void *image, const void *context, void **module)
{
    return image && module ? emu_module_load(image, context, (struct emu_module **)module)
                           : (int)CUDA_ERROR_INVALID_VALUE;
}

static int load_file(const char *path, const void *context, void **module)
{
    return path && module ? emu_module_load_file(path, context, (struct emu_module **)module)
                          : (int)CUDA_ERROR_INVALID_VALUE;
}

static int unload(void *module)
{
    return emu_module_unload(module) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static int find_kernel(void *module, const char *name, void **kernel)
{
    return name && kernel ? emu_module_kernel(module, name, (struct emu_kernel **)kernel)
                          : (int)CUDA_ERROR_INVALID_VALUE;
}

static int count_kernels(const void *module, unsigned *kernels)
{
    if (!kernels || !emu_module_known(module))
        return kernels ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    *kernels = (unsigned)emu_module_kernels(module, NULL, 0);
    return 0;
}

static int list(const void *module, void *kernels, unsigned room)
{
    if (!kernels || !emu_module_known(module))
        return kernels ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    emu_module_kernels(module, kernels, room);
    return 0;
}

CONTEXT_CALL(cuModuleLoad, (CUmodule * module, const char *path), (module, path))
{
    return load_file(path, emu_context_current(), (void **)module);
}

CONTEXT_CALL(cuModuleLoadData, (CUmodule * module, const void *image), (module, image))
{
    return load_driver_module(image, emu_context_current(), (void **)module);
}

CONTEXT_CALL(cuModuleLoadDataEx,
             (CUmodule * module, const void *image, unsigned int count, CUjit_option *options,
              void **values),
             (module, image, count, options, values))
{
    (void)count, (void)options, (void)values; /* how to compile: there is nothing to compile */
    return load_driver_module(image, emu_context_current(), (void **)module);
}

CONTEXT_CALL(cuModuleLoadFatBinary, (CUmodule * module, const void *image), (module, image))
{
    return load_driver_module(image, emu_context_current(), (void **)module);
}

CONTEXT_CALL(cuModuleUnload, (CUmodule module), (module))
{
    return unload(module);
}

CONTEXT_CALL(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
             (function, module, name))
{
    int error = find_kernel(module, name, (void **)function);

    return error ? error
                 : emu_kernel_make_loaded((struct emu_kernel *)*function, emu_device_here());
}

CONTEXT_CALL(cuModuleGetFunctionCount, (unsigned int *functions, CUmodule module),
             (functions, module))
{
    return count_kernels(module, functions);
}

CONTEXT_CALL(cuModuleEnumerateFunctions,
             (CUfunction * functions, unsigned int room, CUmodule module),
             (functions, room, module))
{
    return list(module, functions, room);
}

DRIVER_CALL(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode), (mode))
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = emu_loads_lazily() ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
    return 0;
}

DRIVER_CALL(cuLibraryLoadData,
            (CUlibrary * library, const void *image, CUjit_option *options, void **values,
             unsigned int count, CUlibraryOption *library_options, void **library_values,
             unsigned int library_count),
            (library, image, options, values, count, library_options, library_values,
             library_count))
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values,
        (void)library_count;
    return load_driver_module(image, NULL, (void **)library);
}

DRIVER_CALL(cuLibraryLoadFromFile,
            (CUlibrary * library, const char *path, CUjit_option *options, void **values,
             unsigned int count, CUlibraryOption *library_options, void **library_values,
             unsigned int library_count),
            (library, path, options, values, count, library_options, library_values, library_count))
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values,
        (void)library_count;
    return load_file(path, NULL, (void **)library);
}

DRIVER_CALL(cuLibraryUnload, (CUlibrary library), (library))
{
    return unload(library);
}

DRIVER_CALL(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
            (kernel, library, name))
{
    return find_kernel(library, name, (void **)kernel);
}

DRIVER_CALL(cuLibraryGetKernelCount, (unsigned int *kernels, CUlibrary library), (kernels, library))
{
    return count_kernels(library, kernels);
}

DRIVER_CALL(cuLibraryEnumerateKernels, (CUkernel * kernels, unsigned int room, CUlibrary library),
            (kernels, room, library))
{
    return list(library, kernels, room);
}

CONTEXT_CALL(cuLibraryGetModule, (CUmodule * module, CUlibrary library), (module, library))
{
    if (!module || !emu_module_known((struct emu_module *)library))
        return module ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    *module = (CUmodule)library;
    return 0;
}
