/* aliases.c: older names of functions that CUDA 12 still exports. */
#include "emu/core/event.h"
#include "emu/core/stream.h"
#include "emu/cudart/call.h"

CALL(cudaEventElapsedTime_v2, (float *milliseconds, cudaEvent_t start, cudaEvent_t end),
     (milliseconds, start, end))
{
    if (!milliseconds)
        return cudaErrorInvalidValue;
    if (!emu_event_find(start) || !emu_event_find(end))
        return cudaErrorInvalidResourceHandle;
    return emu_event_elapsed(emu_event_find(start), emu_event_find(end), milliseconds);
}

CALL(cudaThreadSynchronize, (void), ())
{
    return emu_stream_synchronize_device(emu_device_here());
}
