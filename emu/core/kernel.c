/* kernel.c: registers kernels and finds them by handle or name. */
#include "emu/core/kernel.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/handles.h"

static struct {
    pthread_mutex_t lock;
    struct emu_kernel *first;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void kernel_free(struct emu_kernel *kernel)
{
    if (!kernel)
        return;
    free(kernel->mangled);
    free(kernel->name);
    free(kernel);
}

int emu_kernel_register(const void *module, const void *host_function, const char *mangled)
{
    struct emu_kernel *kernel = calloc(1, sizeof(*kernel));

    if (!kernel)
        return cudaErrorMemoryAllocation;
    kernel->module = module;
    kernel->host_function = host_function;
    kernel->mangled = strdup(mangled);
    kernel->name = emu_kernel_base_name(mangled);
    if (!kernel->mangled || !kernel->name || emu_handles_add(kernel, HANDLE_KERNEL))
        goto no_memory;
    if (host_function && emu_handles_add_with(host_function, HANDLE_HOST_FUNCTION, kernel)) {
        emu_handles_remove(kernel, HANDLE_KERNEL);
        goto no_memory;
    }
    pthread_mutex_lock(&registry.lock);
    kernel->next = registry.first;
    registry.first = kernel;
    pthread_mutex_unlock(&registry.lock);
    return 0;
no_memory:
    kernel_free(kernel);
    return cudaErrorMemoryAllocation;
}

void emu_kernel_unregister(const void *module)
{
    struct emu_kernel **link = &registry.first;

    pthread_mutex_lock(&registry.lock);
    while (*link) {
        struct emu_kernel *kernel = *link;

        if (kernel->module != module) {
            link = &kernel->next;
            continue;
        }
        *link = kernel->next;
        emu_handles_remove(kernel, HANDLE_KERNEL);
        if (kernel->host_function)
            emu_handles_remove(kernel->host_function, HANDLE_HOST_FUNCTION);
        kernel_free(kernel);
    }
    pthread_mutex_unlock(&registry.lock);
}

struct emu_kernel *emu_kernel_named(const void *module, const char *mangled)
{
    struct emu_kernel *kernel;

    pthread_mutex_lock(&registry.lock);
    for (kernel = registry.first; kernel; kernel = kernel->next)
        if (kernel->module == module && !strcmp(kernel->mangled, mangled))
            break;
    pthread_mutex_unlock(&registry.lock);
    return kernel;
}

size_t emu_kernel_of_module(const void *module, struct emu_kernel **kernels, size_t room)
{
    size_t count = 0;

    pthread_mutex_lock(&registry.lock);
    for (struct emu_kernel *kernel = registry.first; kernel; kernel = kernel->next)
        if (kernel->module == module && count++ < room)
            kernels[count - 1] = kernel;
    pthread_mutex_unlock(&registry.lock);
    return count;
}

static void look_up_twin(struct emu_kernel *kernel)
{
    int count;

    kernel->twin = emu_twin_find(kernel->name);
    if (!kernel->twin)
        return;
    count = emu_kernel_lay_out(kernel->twin->params, kernel->parameters);
    if (count < 0) {
        emu_unsupported(kernel->name,
                        "its twin's parameter letters can't be read; the kernel does nothing");
        kernel->twin = NULL;
        return;
    }
    kernel->parameter_count = (size_t)count;
}

struct emu_kernel *emu_kernel_find(const void *function)
{
    struct emu_kernel *kernel = emu_handles_get(function, HANDLE_HOST_FUNCTION);

    if (!kernel)
        kernel = emu_handles_get(function, HANDLE_KERNEL);
    if (!kernel || atomic_load(&kernel->looked_up))
        return kernel;
    pthread_mutex_lock(&registry.lock);
    if (!atomic_load(&kernel->looked_up)) {
        look_up_twin(kernel);
        atomic_store(&kernel->looked_up, true);
    }
    pthread_mutex_unlock(&registry.lock);
    return kernel;
}
