/* release.c: frees memory as cudaFree does, after waiting for the device. */
#include <driver_types.h>

#include "emu/core/capture.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"
#include "emu/core/stream.h"

int emu_memory_free_when_idle(void *pointer, unsigned kinds)
{
    struct emu_range range;
    int error = emu_capture_forbids_call();

    if (!pointer || error)
        return error;
    if (!emu_memory_look_up(pointer, &range, NULL) || range.base != (uintptr_t)pointer ||
        !(kinds & 1u << range.kind))
        return cudaErrorInvalidValue;
    error = emu_stream_synchronize_device(emu_device_get(range.device));
    return error ? error : emu_memory_free(pointer, kinds);
}
