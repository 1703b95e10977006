/* gpu.c: queries of the CUDA runtime and driver that change nothing the program can see. */
#include "interpose/real/gpu.h"

#include <string.h>

#include <cuda.h>

#include "interpose/real/resolve.h"

bool gpu_may_query(void)
{
    __typeof__(&cudaPeekAtLastError) peek = REAL_HELPER(cudaPeekAtLastError);
    return !thread_self.in_callback && peek && peek() == cudaSuccess;
}

void gpu_forget_error(void)
{
    __typeof__(&cudaGetLastError) get = REAL_HELPER(cudaGetLastError);
    if (get)
        get();
}

int32_t gpu_thread_device(struct shim_thread *thread)
{
    enum { TRIES = 16 };
    if (__builtin_expect(thread->device >= 0, 1))
        return thread->device;
    if (!(atomic_load_explicit(&shim.used, memory_order_relaxed) & USED_CUDA) ||
        thread->in_callback || thread->device_queries >= TRIES)
        return RECORD_NO_DEVICE;
    __typeof__(&cuCtxGetDevice) of_context = REAL_HELPER(cuCtxGetDevice);
    CUdevice current;
    if (of_context && of_context(&current) == CUDA_SUCCESS)
        return thread->device = current;
    if (!gpu_may_query()) {
        thread->device_queries++;
        return RECORD_NO_DEVICE;
    }
    __typeof__(&cudaGetDevice) get_device = REAL_HELPER(cudaGetDevice);
    int device;
    if (get_device && get_device(&device) == cudaSuccess) {
        thread->device = device;
    } else {
        thread->device_queries++;
        gpu_forget_error();
    }
    return thread->device;
}

static uint64_t identity_by_uuid(int device)
{
    __typeof__(&cuInit) init = REAL_HELPER(cuInit);
    __typeof__(&cuDeviceGet) get = REAL_HELPER(cuDeviceGet);
    __typeof__(&cuDeviceGetUuid) get_uuid = REAL_HELPER(cuDeviceGetUuid);
    static const CUuuid none;
    CUdevice handle;
    CUuuid uuid = none;
    if (!init || !get || !get_uuid || init(0) != CUDA_SUCCESS ||
        get(&handle, device) != CUDA_SUCCESS || get_uuid(&uuid, handle) != CUDA_SUCCESS ||
        !memcmp(&uuid, &none, sizeof uuid))
        return 0;
    return string_id((const char *)&uuid, sizeof uuid);
}

static uint64_t identity_by_address(int device)
{
    __typeof__(&cudaDeviceGetPCIBusId) get = REAL_HELPER(cudaDeviceGetPCIBusId);
    char text[sizeof shim.process.boot_id + 32];
    size_t length = strnlen(shim.process.boot_id, sizeof shim.process.boot_id - 1);
    memcpy(text, shim.process.boot_id, length);
    if (!get || !gpu_may_query())
        return 0;
    if (get(text + length, 32, device) != cudaSuccess) {
        gpu_forget_error();
        return 0;
    }
    return string_id(text, strlen(text));
}

uint64_t gpu_identity(int device)
{
    if (device < 0)
        return 0;
    /* The runtime loads the driver at its first query. */
    __typeof__(&cudaGetDeviceCount) count_devices = REAL_HELPER(cudaGetDeviceCount);
    int count;
    if (count_devices && gpu_may_query() && count_devices(&count) != cudaSuccess)
        gpu_forget_error();
    uint64_t identity = identity_by_uuid(device);
    return identity ? identity : identity_by_address(device);
}

int gpu_relax_captures(void)
{
    __typeof__(&cuThreadExchangeStreamCaptureMode) exchange =
        REAL_HELPER(cuThreadExchangeStreamCaptureMode);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return exchange && exchange(&mode) == CUDA_SUCCESS ? (int)mode : GPU_MODE_UNKNOWN;
}

void gpu_restore_captures(int before)
{
    CUstreamCaptureMode mode = (CUstreamCaptureMode)before;
    if (before != GPU_MODE_UNKNOWN)
        REAL_HELPER(cuThreadExchangeStreamCaptureMode)(&mode);
}

bool gpu_is_capturing(cudaStream_t stream)
{
    __typeof__(&cuStreamIsCapturing) is_capturing = REAL_HELPER(cuStreamIsCapturing);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!is_capturing)
        return false;
    CUresult result = is_capturing(stream, &status);
    /* The legacy stream may not be touched while a stream that waits for it is captured. */
    return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Of the legacy stream, which may not be touched while a stream that waits for it is captured,
 * nothing can be queried; work on it fails, or is no part of the capture. An old driver has no
 * numbers: all captures are one. */
uint64_t gpu_capture_id(cudaStream_t stream)
{
    typedef CUresult get_info(CUstream, CUstreamCaptureStatus *, cuuint64_t *, void *, void *,
                              void *);
    get_info *get = (get_info *)resolve_helper(RUNTIME_DEFAULT, HELPER_cuStreamGetCaptureInfo_v2);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    if (!get || get(stream, &status, &id, NULL, NULL, NULL) != CUDA_SUCCESS)
        return gpu_is_capturing(stream);
    if (status == CU_STREAM_CAPTURE_STATUS_NONE)
        return 0;
    return id ? id : 1;
}

uint8_t gpu_capture_flag(cudaStream_t stream)
{
    bool open = atomic_load_explicit(&shim.captures, memory_order_relaxed) > 0;
    return open && gpu_is_capturing(stream) ? RECORD_FLAG_CAPTURE : 0;
}

/* Where the GPU translates the host's addresses itself, pageable memory is as good as any. */
static uint32_t pageable_type(void)
{
    __typeof__(&cudaGetDevice) get_device = REAL_HELPER(cudaGetDevice);
    __typeof__(&cuDeviceGetAttribute) get = REAL_HELPER(cuDeviceGetAttribute);
    int device, reaches = 0;
    if (!get || !get_device || !gpu_may_query())
        return MEMORY_HOST_PAGEABLE;
    if (get_device(&device) != cudaSuccess) {
        gpu_forget_error();
        return MEMORY_HOST_PAGEABLE;
    }
    bool queried = get(&reaches, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device) ==
                   CUDA_SUCCESS;
    return queried && reaches ? MEMORY_HOST_SHARED : MEMORY_HOST_PAGEABLE;
}

/* Where the device can't be chosen, the program does not learn of it by its last error. */
static bool choose_device(int device)
{
    __typeof__(&cudaSetDevice) set = REAL_CALL(cudaSetDevice);
    bool clean = gpu_may_query();
    if (set && set(device) == cudaSuccess)
        return true;
    if (clean)
        gpu_forget_error();
    return false;
}

CUcontext gpu_current_context(int device)
{
    __typeof__(&cuCtxGetCurrent) get = REAL_HELPER(cuCtxGetCurrent);
    CUcontext context = NULL;
    if (get && get(&context) == CUDA_SUCCESS && !context && gpu_may_query() &&
        choose_device(device))
        get(&context);
    return context;
}

bool gpu_switch_device(struct shim_thread *thread, int device)
{
    int current = gpu_thread_device(thread);
    if (device >= 0 && current == device && thread->context_device != device &&
        gpu_current_context(device))
        thread->context_device = device;
    return device >= 0 && current >= 0 && current != device && choose_device(device);
}

void gpu_restore_device(struct shim_thread *thread, bool switched)
{
    if (switched)
        REAL_CALL(cudaSetDevice)(thread->device);
}

/* The runtime's answer has no range; pageable memory is no error to it. */
static void find_by_runtime(uint64_t pointer, struct gpu_memory *memory)
{
    static const uint32_t types[] = {
        [cudaMemoryTypeUnregistered] = MEMORY_HOST_PAGEABLE,
        [cudaMemoryTypeHost] = MEMORY_HOST_PINNED,
        [cudaMemoryTypeDevice] = MEMORY_DEVICE,
        [cudaMemoryTypeManaged] = MEMORY_MANAGED,
    };
    __typeof__(&cudaPointerGetAttributes) get = REAL_HELPER(cudaPointerGetAttributes);
    /* The struct is longer in a newer runtime than the one that the shim is built for (24 bytes in
     * CUDA 12, 88 in 13); what it begins with is the same. */
    union {
        struct cudaPointerAttributes now;
        char room[512];
    } found;
    if (!get || !gpu_may_query())
        return;
    if (get(&found.now, (const void *)(uintptr_t)pointer) != cudaSuccess) {
        gpu_forget_error();
        return;
    }
    struct cudaPointerAttributes attributes = found.now;
    if ((unsigned)attributes.type < sizeof types / sizeof *types)
        memory->type = attributes.type == cudaMemoryTypeUnregistered ? pageable_type()
                                                                     : types[attributes.type];
    if (memory->type == MEMORY_DEVICE || memory->type == MEMORY_MANAGED)
        memory->device = attributes.device;
}

void gpu_memory_find(uint64_t pointer, struct gpu_memory *memory)
{
    *memory =
        (struct gpu_memory){.base = pointer, .device = RECORD_NO_DEVICE, .type = MEMORY_UNKNOWN};
    __typeof__(&cuPointerGetAttributes) get = REAL_HELPER(cuPointerGetAttributes);
    CUmemorytype type = 0;
    int ordinal = RECORD_NO_DEVICE;
    unsigned managed = 0, plain = 0;
    CUdeviceptr start = 0;
    size_t size = 0;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    void *values[] = {&type, &ordinal, &managed, &start, &size, &plain};
    if (!get ||
        get(sizeof wanted / sizeof *wanted, wanted, values, (CUdeviceptr)pointer) != CUDA_SUCCESS) {
        find_by_runtime(pointer, memory);
        return;
    }
    if (!type) { /* no error, all zero: memory that CUDA does not know */
        memory->type = pageable_type();
        return;
    }
    /* What cudaMalloc gave can be shared by legacy IPC; memory of pools and of cuMemMap can not. */
    if (managed)
        memory->type = MEMORY_MANAGED;
    else if (type == CU_MEMORYTYPE_HOST)
        memory->type = MEMORY_HOST_PINNED;
    else
        memory->type = plain ? MEMORY_DEVICE : MEMORY_DEVICE_MAPPED;
    memory->device = memory->type == MEMORY_HOST_PINNED ? RECORD_NO_DEVICE : ordinal;
    if (size) {
        memory->base = start;
        memory->bytes = size;
    }
}
