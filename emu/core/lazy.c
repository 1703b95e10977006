/* lazy.c: loads a kernel at its first use on a device. */
#include "emu/core/lazy.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/kernel.h"
#include "emu/core/stream.h"

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
