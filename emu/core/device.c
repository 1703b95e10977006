/* device.c: the virtual devices of this process, their current one, errors and peer access. */
#include "emu/core/device.h"

#include <driver_types.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/memory.h"
#include "emu/core/pool.h"
#include "emu/core/process.h"
#include "emu/core/stream.h"

static struct {
    pthread_once_t once;
    int count;
    struct emu_device devices[EMU_MAX_DEVICES];
} machine = {.once = PTHREAD_ONCE_INIT};

static _Thread_local int current = -1; /* -1: device 0, not yet chosen */
/* What the thread made current of the contexts that programs create; NULL: the primary one. */
static _Thread_local const void *created_context;

/* A number of the environment, or `fallback`, with a warning, if it makes no sense. */
static uint64_t environment_number(const char *name, uint64_t fallback, uint64_t least,
                                   uint64_t most)
{
    const char *text = getenv(name);
    char *end;
    uint64_t number;

    if (!text || !*text)
        return fallback;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno || *end || number < least || number > most) {
        fprintf(stderr, "ddpcheck emu: %s=%s is not a number from %llu to %llu; %llu is used\n",
                name, text, (unsigned long long)least, (unsigned long long)most,
                (unsigned long long)fallback);
        return fallback;
    }
    return number;
}

/* A number of bytes: "16G", "512M", "64K" or plain. */
static uint64_t environment_bytes(const char *name, uint64_t fallback, uint64_t least,
                                  uint64_t most)
{
    static const char units[] = "KMG";
    const char *text = getenv(name);
    char *end;

    if (!text || !*text)
        return fallback;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    bool is_number = end > text && *text != '-' && !errno && !end[unit ? 1 : 0];
    if (is_number && number <= most >> shift && number << shift >= least)
        return number << shift;
    fprintf(stderr,
            "ddpcheck emu: %s=%s is not a size from %lluM to %lluG, such as 16G; %lluG is used\n",
            name, text, (unsigned long long)least >> 20, (unsigned long long)most >> 30,
            (unsigned long long)fallback >> 30);
    return fallback;
}

/* Fills `physical` with what CUDA_VISIBLE_DEVICES leaves of `count` devices. As in CUDA, the list
 * ends at the first entry that names no device. */
static int visible_devices(int count, int *physical)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int visible = 0;

    if (!text) {
        for (; visible < count; visible++)
            physical[visible] = visible;
        return visible;
    }
    while (visible < count) {
        char *end;
        long device = strtol(text, &end, 10);

        if (end == text || device < 0 || device >= count)
            break;
        physical[visible++] = (int)device;
        if (*end != ',')
            break;
        text = end + 1;
    }
    return visible;
}

static void machine_start(void)
{
    int physical[EMU_MAX_DEVICES];
    int count = (int)environment_number("DDPCHECK_EMU_DEVICES", 1, 0, EMU_MAX_DEVICES);
    size_t limit =
        environment_bytes("DDPCHECK_EMU_MEMORY", (uint64_t)8 << 30, 1 << 20, (uint64_t)1 << 40);

    count = visible_devices(count, physical);
    for (int i = 0; i < count; i++) {
        struct emu_device *device = &machine.devices[i];

        device->index = i;
        device->physical = physical[i];
        device->memory_limit = limit;
        pthread_mutex_init(&device->streams_lock, NULL);
        device->legacy = emu_stream_new_legacy(device);
        device->default_pool = emu_pool_new(i);
        atomic_store(&device->pool, device->default_pool);
        if (!device->legacy || !device->default_pool) {
            fprintf(stderr, "ddpcheck emu: no memory for device %d and those after it\n", i);
            count = i;
        }
    }
    machine.count = count;
    emu_process_begin();
}

int emu_device_count(void)
{
    pthread_once(&machine.once, machine_start);
    return machine.count;
}

struct emu_device *emu_device_get(int index)
{
    if (index < 0 || index >= emu_device_count())
        return NULL;
    return &machine.devices[index];
}

int emu_device_current(void)
{
    return current < 0 ? 0 : current;
}

bool emu_device_chosen(void)
{
    return current >= 0;
}

void emu_device_unset(void)
{
    current = -1;
    created_context = NULL;
}

const void *emu_context_current(void)
{
    return created_context ? created_context : emu_device_here();
}

const void *emu_context_created(void)
{
    return created_context;
}

void emu_context_set(const void *context)
{
    created_context = context;
}

struct emu_device *emu_device_here(void)
{
    struct emu_device *device = emu_device_get(emu_device_current());

    if (device) {
        current = device->index;
        if (!atomic_load_explicit(&device->active, memory_order_relaxed))
            atomic_store(&device->active, true);
    }
    return device;
}

int emu_device_set(int index)
{
    struct emu_device *device = emu_device_get(index);

    if (!device)
        return emu_device_count() ? cudaErrorInvalidDevice : cudaErrorNoDevice;
    current = index;
    created_context = NULL;
    atomic_store(&device->active, true);
    return 0;
}

int emu_device_error(int index)
{
    const struct emu_device *device = emu_device_get(index);

    return device ? atomic_load_explicit(&device->error, memory_order_acquire) : 0;
}

void emu_device_fail(int index, int error)
{
    struct emu_device *device = emu_device_get(index);
    int none = 0;

    if (device && atomic_compare_exchange_strong(&device->error, &none, error))
        emu_stream_wake_device(device);
}

int emu_device_reset(struct emu_device *device)
{
    bool idle = emu_stream_abandon_device(device);

    emu_memory_drop_device(device->index, idle);
    atomic_store(&device->peers, 0);
    atomic_store(&device->pool, device->default_pool);
    atomic_store(&device->error, 0);
    atomic_store(&device->active, false);
    return 0;
}
