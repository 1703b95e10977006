/* kernel.c: registers kernels, finds them by handle or name, and loads them at their first use. */
#include "emu/core/kernel.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/architecture.h"
#include "emu/core/device.h"
#include "emu/core/handles.h"
#include "emu/core/image.h"
#include "emu/core/stream.h"

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

static void take_layout(struct emu_kernel *kernel, const struct emu_image_kernel *found)
{
    if (found->count <= 0)
        return;
    kernel->parameter_count = (size_t)found->count;
    memcpy(kernel->parameters, found->parameters,
           kernel->parameter_count * sizeof(*kernel->parameters));
}

/* Takes over `kernel`, whose names are still to be set. */
static int add_kernel(struct emu_kernel *kernel, const char *mangled, size_t length)
{
    kernel->mangled = strndup(mangled, length);
    kernel->name = kernel->mangled ? emu_kernel_base_name(kernel->mangled) : NULL;
    if (!kernel->name || emu_handles_add(kernel, HANDLE_KERNEL))
        goto no_memory;
    if (kernel->host_function &&
        emu_handles_add_with(kernel->host_function, HANDLE_HOST_FUNCTION, kernel)) {
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

int emu_kernel_register(const void *module, const void *host_function, const char *mangled,
                        const void *image)
{
    struct emu_kernel *kernel = calloc(1, sizeof(*kernel));

    if (!kernel)
        return cudaErrorMemoryAllocation;
    kernel->module = module;
    kernel->host_function = host_function;
    kernel->image = image;
    return add_kernel(kernel, mangled, strlen(mangled));
}

int emu_kernel_load(const void *module, const void *context, const struct emu_image_kernel *found)
{
    struct emu_kernel *kernel = calloc(1, sizeof(*kernel));

    if (!kernel)
        return cudaErrorMemoryAllocation;
    kernel->module = module;
    kernel->context = context;
    take_layout(kernel, found);
    return add_kernel(kernel, found->name, found->length);
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

static bool take_layout_if_named(void *arg, const struct emu_image_kernel *found)
{
    struct emu_kernel *kernel = arg;
    bool other = strlen(kernel->mangled) != found->length ||
                 memcmp(kernel->mangled, found->name, found->length) != 0;

    if (!other)
        take_layout(kernel, found);
    return other;
}

/* The registered device code: whether a device runs it, and what parameters it declares. */
static void look_up_image(struct emu_kernel *kernel)
{
    if (!kernel->image)
        return;
    kernel->misfit = emu_image_misfit(kernel->image, emu_architecture());
    emu_image_kernels(kernel->image, take_layout_if_named, kernel);
}

/* Offsets and sizes are the device code's where it shows them: a twin may read the first parameters
 * only, and its letters say little of structs. */
static void take_twin_layout(struct emu_kernel *kernel, const struct emu_parameter *said,
                             size_t count)
{
    if (kernel->parameter_count < count) {
        memcpy(kernel->parameters, said, count * sizeof(*said));
        kernel->parameter_count = count;
    }
    for (size_t i = 0; i < count; i++)
        kernel->parameters[i].pointer = said[i].pointer;
}

static void look_up_twin(struct emu_kernel *kernel)
{
    size_t bytes = kernel->parameter_count ? kernel->parameters[0].bytes : 0;
    struct emu_parameter said[EMU_MAX_PARAMETERS];
    int count;

    kernel->twin = emu_twin_find(kernel->name);
    if (!kernel->twin)
        kernel->twin = emu_pytorch_find(kernel->mangled, bytes);
    if (!kernel->twin)
        return;
    count = emu_kernel_lay_out(kernel->twin->params, said);
    if (count < 0) {
        emu_unsupported(kernel->name,
                        "its twin's parameter letters can't be read; the kernel does nothing");
        kernel->twin = NULL;
        return;
    }
    take_twin_layout(kernel, said, (size_t)count);
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
        look_up_image(kernel);
        look_up_twin(kernel);
        atomic_store(&kernel->looked_up, true);
    }
    pthread_mutex_unlock(&registry.lock);
    return kernel;
}

int emu_kernel_misfit(const struct emu_kernel *kernel)
{
    char text[80];

    if (kernel->misfit == cudaErrorNoKernelImageForDevice) {
        snprintf(text, sizeof(text), "device code without a part for compute capability %u.%u",
                 emu_architecture() / 10, emu_architecture() % 10);
        emu_unsupported(text, "DDPCHECK_EMU_ARCHITECTURE sets that of the emulated GPUs");
    }
    return kernel->misfit;
}

int emu_kernel_check(const void *function, int unknown)
{
    const struct emu_kernel *kernel = emu_kernel_find(function);

    return kernel ? emu_kernel_misfit(kernel) : unknown;
}

/* --- loading --- */

enum { BITS = 64 };

/* Read once: a program may change its environment while other threads call CUDA. */
bool emu_loads_lazily(void)
{
    enum { UNKNOWN, EAGER, LAZY };
    static atomic_int mode;
    int known = atomic_load_explicit(&mode, memory_order_relaxed);

    if (known == UNKNOWN) {
        const char *wanted = getenv("DDPCHECK_EMU_LAZY_LOADING"),
                   *cuda = getenv("CUDA_MODULE_LOADING");

        known = wanted && !strcmp(wanted, "1") && (!cuda || strcmp(cuda, "EAGER")) ? LAZY : EAGER;
        atomic_store(&mode, known);
    }
    return known == LAZY;
}

bool emu_kernel_is_loaded(const struct emu_kernel *kernel, const struct emu_device *device)
{
    uint64_t bit = UINT64_C(1) << device->index % BITS;

    return !emu_loads_lazily() || (atomic_load(&kernel->loaded[device->index / BITS]) & bit);
}

int emu_kernel_make_loaded(struct emu_kernel *kernel, struct emu_device *device)
{
    int error;

    if (emu_kernel_is_loaded(kernel, device))
        return 0;
    error = emu_stream_synchronize_device(device);
    if (!error)
        atomic_fetch_or(&kernel->loaded[device->index / BITS], UINT64_C(1) << device->index % BITS);
    return error;
}
