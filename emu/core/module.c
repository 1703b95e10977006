/* module.c: loads device code and keeps its kernels until it is unloaded. */
#include "emu/core/module.h"

#include <driver_types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/architecture.h"
#include "emu/core/handles.h"
#include "emu/core/image.h"
#include "emu/core/kernel.h"

struct emu_module {
    enum emu_image image;
    const void *context; /* NULL: of none, as libraries */
};

struct loading {
    struct emu_module *module;
    int error;
};

static bool load_module_kernel(void *arg, const struct emu_image_kernel *found)
{
    struct loading *loading = arg;
    char *copy = strndup(found->name, found->length);

    if (!copy)
        loading->error = cudaErrorMemoryAllocation;
    else if (!emu_kernel_named(loading->module,
                               copy)) /* a fat binary has it once per architecture */
        loading->error = emu_kernel_load(loading->module, loading->module->context, found);
    free(copy);
    return !loading->error;
}

int emu_module_load(const void *image, const void *context, struct emu_module **module)
{
    struct loading loading = {.module = NULL};

    loading.error = emu_image_misfit(image, emu_architecture());
    if (loading.error)
        return loading.error;
    loading.module = calloc(1, sizeof(struct emu_module));
    if (!loading.module)
        return cudaErrorMemoryAllocation;
    loading.module->context = context;
    loading.module->image = emu_image_kernels(image, load_module_kernel, &loading);
    if (!loading.error && loading.module->image == EMU_IMAGE_NONE)
        loading.error = cudaErrorInvalidKernelImage;
    if (!loading.error)
        loading.error = emu_handles_add(loading.module, HANDLE_MODULE);
    if (loading.error) {
        emu_kernel_unregister(loading.module);
        free(loading.module);
        return loading.error;
    }
    *module = loading.module;
    return 0;
}

/* The whole file and a NUL behind it (PTX), or NULL. */
static char *read_module_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long bytes;

    if (!file)
        return NULL;
    if (!fseek(file, 0, SEEK_END) && (bytes = ftell(file)) > 0 && !fseek(file, 0, SEEK_SET)) {
        text = calloc(1, (size_t)bytes + sizeof(void *));
        if (text && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
            free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}

int emu_module_load_file(const char *path, const void *context, struct emu_module **module)
{
    char *image = read_module_file(path);
    int error = image ? emu_module_load(image, context, module) : (int)cudaErrorFileNotFound;

    free(image);
    return error;
}

int emu_module_unload(struct emu_module *module)
{
    if (!emu_handles_remove(module, HANDLE_MODULE))
        return false;
    emu_kernel_unregister(module);
    free(module);
    return true;
}

int emu_module_known(const struct emu_module *module)
{
    return emu_handles_kind(module) == HANDLE_MODULE;
}

int emu_module_kernel(struct emu_module *module, const char *name, struct emu_kernel **kernel)
{
    char *base;
    int error = 0;

    if (!emu_module_known(module))
        return cudaErrorInvalidResourceHandle;
    *kernel = emu_kernel_named(module, name);
    if (*kernel || module->image != EMU_IMAGE_PACKED)
        return *kernel ? 0 : cudaErrorSymbolNotFound;
    base = emu_kernel_base_name(name);
    if (!base)
        return cudaErrorMemoryAllocation;
    error = emu_twin_find(base) ? emu_kernel_register(module, NULL, name, NULL)
                                : (int)cudaErrorSymbolNotFound;
    free(base);
    *kernel = error ? NULL : emu_kernel_named(module, name);
    return error;
}

size_t emu_module_kernels(const struct emu_module *module, struct emu_kernel **kernels, size_t room)
{
    return emu_kernel_of_module(module, kernels, room);
}
