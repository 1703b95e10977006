/* streams.c: asks about streams that were made unseen. See streams.h. */
#include "interpose/calls/streams.h"

#include <cuda.h>

#include "interpose/record/emit.h"
#include "interpose/calls/resolve.h"
#include "interpose/record/selection.h"

/* cuStreamGetDevice came with CUDA 12.8; before, a stream is used on its own device but for waits.
 */
static int32_t device_of(struct thread *thread, CUstream stream)
{
    __typeof__(&cuStreamGetDevice) get = REAL_HELPER(cuStreamGetDevice);
    CUdevice device;
    return get && get(stream, &device) == CUDA_SUCCESS ? device : thread_device(thread);
}

/* Driver calls leave no error behind that the program could see. While anything is captured nothing
 * is asked: it will be when the stream is next used. */
void streams_tell_slow(struct thread *thread, uint64_t stream)
{
    __typeof__(&cuStreamGetFlags) get_flags = REAL_HELPER(cuStreamGetFlags);
    CUstream handle = (CUstream)(uintptr_t)stream;
    unsigned flags;
    if (atomic_load_explicit(&shim.captures, memory_order_relaxed) > 0 || !get_flags ||
        get_flags(handle, &flags) != CUDA_SUCCESS)
        return;
    struct record record = {.stream = stream, .event = {.flags = flags}};
    if (emit_notice_on(thread, &record, API_notice_stream, device_of(thread, handle)))
        streams_made(stream);
    selection_stream(thread, stream, flags);
}
