/* ipc.c: exports device memory to other processes and opens what they exported. */
#include "emu/core/ipc.h"

#include <driver_types.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"
#include "emu/core/stream.h"

static const uint64_t magic = 0x6970632064647063;

struct ipc_handle {
    uint64_t magic, id, bytes, mapped;
    int32_t process, file, physical, reserved;
};

_Static_assert(sizeof(struct ipc_handle) <= EMU_IPC_HANDLE_BYTES, "CUDA's handles are not larger");

/* One allocation at a time moves; nobody else sees `shared` but release. */
static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;

static bool copy_into(int file, const char *from, size_t bytes)
{
    while (bytes) {
        ssize_t written = write(file, from, bytes);

        if (written <= 0)
            return false;
        from += written;
        bytes -= (size_t)written;
    }
    return true;
}

static int move_into_file(struct emu_range *range)
{
    int file = memfd_create("ddpcheck-emu", MFD_CLOEXEC);

    if (file < 0)
        return cudaErrorMemoryAllocation;
    if (!copy_into(file, (const char *)range->base, range->mapped) ||
        mmap((void *)range->base, range->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             file, 0) == MAP_FAILED) {
        close(file);
        return cudaErrorMemoryAllocation;
    }
    range->shared = file + 1;
    return 0;
}

static int export(struct emu_range *range, void *handle)
{
    struct ipc_handle made = {.magic = magic, .process = getpid()};
    int error = 0;

    pthread_mutex_lock(&moving);
    if (!range->shared)
        error = move_into_file(range);
    made.file = range->shared - 1;
    pthread_mutex_unlock(&moving);
    made.id = range->id;
    made.bytes = range->bytes;
    made.mapped = range->mapped;
    made.physical = emu_device_get(range->device)->physical;
    memset(handle, 0, EMU_IPC_HANDLE_BYTES);
    memcpy(handle, &made, sizeof(made));
    return error;
}

int emu_ipc_export(void *pointer, void *handle)
{
    struct emu_range *range;
    struct emu_range known;
    int error;

    if (!pointer || !emu_memory_look_up(pointer, &known, NULL) ||
        known.base != (uintptr_t)pointer || known.kind != EMU_MEMORY_DEVICE || known.pool ||
        known.imported || known.physical)
        return cudaErrorInvalidValue;
    error = emu_stream_synchronize_device(emu_device_get(known.device));
    if (!error)
        error = emu_memory_hold(-1, pointer, 1, false, &range);
    if (error)
        return error;
    error = export(range, handle);
    emu_memory_release(range);
    return error;
}

/* The process's own name for the device, or the current one if it does not see it. */
static int logical_device_of(int physical)
{
    for (int i = 0; i < emu_device_count(); i++)
        if (emu_device_get(i)->physical == physical)
            return i;
    return emu_device_current();
}

static void *map_file(const struct ipc_handle *handle)
{
    struct stat status;
    char path[64];
    void *base = MAP_FAILED;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->process, handle->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return MAP_FAILED;
    if (!fstat(file, &status) && (size_t)status.st_size == handle->mapped)
        base = mmap(NULL, handle->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return base;
}

int emu_ipc_open(const void *handle, int reach, void **pointer)
{
    struct emu_range model = {.kind = EMU_MEMORY_DEVICE, .imported = true};
    struct ipc_handle made;
    void *base;

    memcpy(&made, handle, sizeof(made));
    if (made.magic != magic || made.process == getpid())
        return cudaErrorInvalidResourceHandle;
    base = map_file(&made);
    if (base == MAP_FAILED)
        return cudaErrorMapBufferObjectFailed;
    model.base = (uintptr_t)base;
    model.bytes = made.bytes;
    model.mapped = made.mapped;
    model.device = logical_device_of(made.physical);
    if (emu_memory_import(&model)) {
        munmap(base, made.mapped);
        return cudaErrorMemoryAllocation;
    }
    if (reach)
        atomic_fetch_or(&emu_device_here()->peers, UINT64_C(1) << model.device);
    *pointer = base;
    return 0;
}

int emu_ipc_close(void *pointer)
{
    struct emu_range range;
    int error;

    if (!emu_memory_look_up(pointer, &range, NULL) || range.base != (uintptr_t)pointer ||
        !range.imported)
        return cudaErrorInvalidValue;
    error = emu_stream_synchronize_device(emu_device_here());
    return error ? error : emu_memory_unimport(pointer);
}
