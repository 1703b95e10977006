/* streams.c: records streams that the wrappers did not see created, and tracks what the default
 * stream orders. */
#include "interpose/record/streams.h"

#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "interpose/real/gpu.h"
#include "interpose/real/resolve.h"
#include "interpose/ring/emit.h"
#include "interpose/shim/forget.h"

enum { DEVICES = 64 };

struct streams streams;

void streams_forked(void)
{
    forget_state(&streams, sizeof streams);
}

/* cuStreamGetDevice came with CUDA 12.8; before, a stream is used on its own device but for waits.
 */
static int32_t stream_device(struct shim_thread *thread, CUstream stream)
{
    __typeof__(&cuStreamGetDevice) get = REAL_HELPER(cuStreamGetDevice);
    CUdevice device;
    return get && get(stream, &device) == CUDA_SUCCESS ? device : gpu_thread_device(thread);
}

/* Work on the default stream that was not recorded comes before all that a blocking stream is given
 * from now on: a launch of nothing on the default stream stands for it. */
static void add_to_order(struct shim_thread *thread, uint64_t stream, unsigned flags)
{
    if (flags & cudaStreamNonBlocking)
        handles_add(&streams.nonblocking, stream);
    if (flags & cudaStreamNonBlocking || shim.selection != SELECT_USED ||
        atomic_exchange_explicit(&streams.blocking, 1, memory_order_seq_cst))
        return;
    uint64_t devices = atomic_load(&streams.legacy_kept);
    for (int device = 0; devices; device++, devices >>= 1) {
        struct record record = {.launch = {.known = 0}};
        if (devices & 1)
            emit_notice_on(thread, &record, API_cudaLaunchKernel, device);
    }
}

/* Driver calls leave no error behind that the program could see. While anything is captured nothing
 * is queried: the stream's next use does. */
void streams_record_slow(struct shim_thread *thread, uint64_t stream)
{
    __typeof__(&cuStreamGetFlags) get_flags = REAL_HELPER(cuStreamGetFlags);
    CUstream handle = (CUstream)(uintptr_t)stream;
    unsigned flags;
    if (atomic_load_explicit(&shim.captures, memory_order_relaxed) > 0 || thread->in_callback ||
        !get_flags || get_flags(handle, &flags) != CUDA_SUCCESS)
        return;
    struct record record = {.stream = stream, .event = {.flags = flags}};
    if (emit_notice_on(thread, &record, API_notice_stream, stream_device(thread, handle)))
        handles_add(&streams.recorded, stream);
    add_to_order(thread, stream, flags);
}

void streams_add(struct shim_thread *thread, uint64_t stream, unsigned flags)
{
    handles_add(&streams.recorded, stream);
    add_to_order(thread, stream, flags);
}

void streams_remove(uint64_t stream)
{
    handles_remove(&streams.recorded, stream);
    handles_remove(&streams.nonblocking, stream);
}

/* Work on the legacy default stream waits for the blocking streams and holds them up: where there
 * are any, it is order, as is their own work. The first work shows the analyzer that there is such
 * a stream. */
bool streams_orders_others(struct shim_thread *thread, uint64_t stream)
{
    int device = thread->device;
    if (stream > (uintptr_t)cudaStreamPerThread)
        return !handles_has(&streams.nonblocking, stream);
    if (stream == (uintptr_t)cudaStreamPerThread || device < 0 || device >= DEVICES ||
        atomic_load_explicit(&streams.blocking, memory_order_seq_cst))
        return true;
    if (!(atomic_load_explicit(&streams.legacy_recorded, memory_order_relaxed) >> device & 1)) {
        atomic_fetch_or(&streams.legacy_recorded, 1ull << device);
        return true;
    }
    if (!(atomic_load_explicit(&streams.legacy_kept, memory_order_relaxed) >> device & 1))
        atomic_fetch_or(&streams.legacy_kept, 1ull << device);
    return false;
}
