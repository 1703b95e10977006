/* register.c: registers device code, kernels and variables, as nvcc's host code does before main,
 * and loads libraries of device code that programs ask for. The work is done by twins; of the
 * device code only what it is for, and its kernels' parameters, are used. */
#include <stdio.h>
#include <string.h>

#include "emu/core/architecture.h"
#include "emu/core/image.h"
#include "emu/core/kernel.h"
#include "emu/core/module.h"
#include "emu/cudart/call.h"
#include "emu/cudart/variable.h"

struct texture_reference;

void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaRegisterFatBinaryEnd(void **module);
void __cudaUnregisterFatBinary(void **module);
char __cudaInitModule(void **module);
void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size);
void __cudaRegisterVar(void **module, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void **module, void **host, char *device, const char *name,
                              int external, size_t bytes, int constant, int global);
void __cudaRegisterHostVar(void **module, const char *name, char *host, size_t bytes);
void __cudaRegisterUnifiedTable(void **module, void *table);

void **__cudaRegisterFatBinary(void *fat_binary)
{
    void **module = malloc(sizeof(*module));

    if (!module) {
        fprintf(stderr, "ddpcheck emu: no memory to register a program's kernels\n");
        abort(); /* there is no way to report it, and every launch would fail */
    }
    *module = (void *)emu_image_registered(fat_binary);
    emu_architecture_add(*module);
    return module;
}

void __cudaRegisterFatBinaryEnd(void **module)
{
    (void)module;
}

void __cudaUnregisterFatBinary(void **module)
{
    if (!module)
        return;
    emu_kernel_unregister(module);
    variable_unregister(module);
    emu_architecture_remove(*module);
    free(module);
}

char __cudaInitModule(void **module)
{
    return module != NULL;
}

void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size)
{
    (void)device, (void)thread_limit, (void)thread, (void)block, (void)block_size, (void)grid_size,
        (void)warp_size;
    if (emu_kernel_register(module, host, name, *module))
        fprintf(stderr,
                "ddpcheck emu: no memory to register the kernel %s; its launches will fail\n",
                name);
}

void __cudaRegisterVar(void **module, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global)
{
    (void)device, (void)external, (void)constant, (void)global;
    if (variable_register(module, host, name, bytes))
        fprintf(stderr, "ddpcheck emu: no memory to register the variable %s\n", name);
}

void __cudaRegisterManagedVar(void **module, void **host, char *device, const char *name,
                              int external, size_t bytes, int constant, int global)
{
    (void)device, (void)external, (void)constant, (void)global;
    if (variable_register_managed(module, host, name, bytes))
        fprintf(stderr, "ddpcheck emu: no memory for the managed variable %s\n", name);
}

void __cudaRegisterHostVar(void **module, const char *name, char *host, size_t bytes)
{
    (void)module, (void)name, (void)host, (void)bytes; /* host memory that device code would read */
}

void __cudaRegisterUnifiedTable(void **module, void *table)
{
    (void)module, (void)table; /* function pointers for device code */
}

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
