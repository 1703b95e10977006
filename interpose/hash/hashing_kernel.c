/* hashing_kernel.c: loading and launching the kernel. See hashing_kernel.h. Driver calls only: they
 * leave no error behind that the program could see. */
#include "interpose/hash/hashing_kernel.h"

#include <stdio.h>
#include <string.h>

#include <cuda.h>

#include "interpose/record/emit.h"
#include "interpose/progress/gpu.h"
#include "interpose/calls/resolve.h"
#include "kernels/payload.h"

#define KERNEL "_Z21ddpcheck_payload_hashPKvmiP13payload_foundmi"

enum { CONTEXTS = 64, PROBES = 64, BLOCKS_PER_MULTIPROCESSOR = 4, MULTIPROCESSORS_USUAL = 100 };
enum { CONTEXT_FREE, CONTEXT_LOADING, CONTEXT_READY, CONTEXT_UNUSABLE };

_Static_assert(sizeof(struct payload_found) == sizeof(struct hash_found) &&
                   offsetof(struct payload_found, done) == offsetof(struct hash_found, done) &&
                   offsetof(struct payload_found, flags) == offsetof(struct hash_found, flags) &&
                   offsetof(struct payload_found, infs) == offsetof(struct hash_found, infs),
               "the kernel writes struct hash_found");
_Static_assert((int)RING_HASHES <= (int)PAYLOAD_PARTIALS,
               "each entry of the ring file has its partial sums on the device");
_Static_assert((int)PAYLOAD_UNIFORM == (int)HASH_UNIFORM,
               "flags go from kernel to record as they are");

/* The fat binary (hashing_image.c) and how long it is: 0 where ddpcheck was built without nvcc. */
extern const unsigned char hashing_image[];
extern const uint64_t hashing_image_bytes;

/* Modules belong to contexts. */
static struct kernel_context {
    _Atomic uint32_t state;
    _Atomic(void *) context;
    CUfunction function;
    unsigned blocks; /* at most */
} contexts[CONTEXTS];

enum page_state { PAGE_UNKNOWN, PAGE_PREPARING, PAGE_READY, PAGE_NONE };
static struct {
    _Atomic uint32_t state; /* enum page_state */
    CUdeviceptr address;    /* of the entries, as the GPU sees them */
} page;

bool hashing_wanted(void)
{
    return shim.hashing;
}

void hashing_kernel_forked(void)
{
    memset((void *)contexts, 0, sizeof contexts);
    memset((void *)&page, 0, sizeof page);
}

/* On stderr and in the trace. Returns the id of the text. */
static uint64_t tell_why(struct thread *thread, const char *why)
{
    char text[160];
    int bytes = snprintf(text, sizeof text, "payloads (--hash): %s", why);
    shim_say(PROBLEM_HASHING, "payloads are not hashed: %s", why);
    struct record blind = {.range = {.text = emit_string(thread, text, (uint64_t)bytes)}};
    emit_notice(thread, &blind, API_notice_blind);
    return blind.range.text;
}

static void tell(struct thread *thread, const char *why)
{
    struct record record = {.hashing = {.entries = why ? 0 : shim.file->hash_entries}};
    if (why)
        record.hashing.text = tell_why(thread, why);
    emit_notice(thread, &record, API_notice_hashing);
}

/* Makes the entries writable for all devices. Returns NULL, or why that can't be done. */
static const char *register_page(void)
{
    __typeof__(&cuMemHostRegister) host_register = REAL_HELPER(cuMemHostRegister);
    __typeof__(&cuMemHostGetDevicePointer) device_pointer = REAL_HELPER(cuMemHostGetDevicePointer);
    struct ring_file *file = shim.file;
    if (!hashing_image_bytes)
        return "this ddpcheck was built without nvcc and has no kernel for it";
    if (!file->hash_entries)
        return "there was no room for the hashes";
    if (!host_register || !device_pointer || !REAL_HELPER(cuModuleLoadData) ||
        !REAL_HELPER(cuModuleGetFunction) || !REAL_HELPER(cuLaunchKernel) ||
        !REAL_HELPER(cuCtxGetCurrent))
        return "the CUDA driver has not the functions that it takes";
    size_t bytes = file->hash_entries * sizeof(struct hash_entry);
    if (host_register(ring_hashes(file), bytes,
                      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP) != CUDA_SUCCESS ||
        device_pointer(&page.address, ring_hashes(file), 0) != CUDA_SUCCESS)
        return "the GPU can't write to the ring file";
    return NULL;
}

static bool prepare_page(struct thread *thread)
{
    uint32_t state = PAGE_UNKNOWN;
    if (atomic_compare_exchange_strong(&page.state, &state, PAGE_PREPARING)) {
        const char *why = register_page();
        tell(thread, why);
        state = why ? PAGE_NONE : PAGE_READY;
        atomic_store_explicit(&page.state, state, memory_order_release);
    }
    return state == PAGE_READY;
}

static void load(struct thread *thread, struct kernel_context *entry)
{
    __typeof__(&cuCtxGetDevice) get_device = REAL_HELPER(cuCtxGetDevice);
    __typeof__(&cuDeviceGetAttribute) get_attribute = REAL_HELPER(cuDeviceGetAttribute);
    CUmodule module;
    CUdevice device;
    int multiprocessors = 0;
    /* The function is loaded here even where CUDA loads lazily: that may wait for the device, and
     * so must not happen beside collectives (CUDA programming guide, "Lazy Loading": potential
     * hazards). */
    bool usable = REAL_HELPER(cuModuleLoadData)(&module, hashing_image) == CUDA_SUCCESS &&
                  REAL_HELPER(cuModuleGetFunction)(&entry->function, module, KERNEL) ==
                      CUDA_SUCCESS;
    if (!get_device || !get_attribute || get_device(&device) != CUDA_SUCCESS ||
        get_attribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) !=
            CUDA_SUCCESS ||
        multiprocessors < 1)
        multiprocessors = MULTIPROCESSORS_USUAL;
    entry->blocks = (unsigned)multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    if (!usable)
        tell_why(thread, "the GPU's driver does not take the kernel");
    atomic_store_explicit(&entry->state, usable ? CONTEXT_READY : CONTEXT_UNUSABLE,
                          memory_order_release);
}

/* A thread that made no runtime call so far has no context: the runtime binds its device's when it
 * is set. */
static CUcontext current_context(int device)
{
    __typeof__(&cudaSetDevice) set = REAL_CALL(cudaSetDevice);
    CUcontext context = NULL;
    if (REAL_HELPER(cuCtxGetCurrent)(&context) == CUDA_SUCCESS && !context && set &&
        gpu_may_ask() && set(device) == cudaSuccess)
        REAL_HELPER(cuCtxGetCurrent)(&context);
    return context;
}

/* The kernel in the current context; loaded if it is not and nothing is being captured. NULL if
 * there is none. */
static const struct kernel_context *current(struct thread *thread, int device)
{
    CUcontext context = current_context(device);
    if (!context)
        return NULL;
    for (int i = 0; i < CONTEXTS; i++) {
        struct kernel_context *entry = &contexts[i];
        uint32_t state = atomic_load_explicit(&entry->state, memory_order_acquire);
        if (state == CONTEXT_FREE && atomic_load(&shim.captures) == 0 &&
            atomic_compare_exchange_strong(&entry->state, &state, CONTEXT_LOADING)) {
            atomic_store(&entry->context, context);
            load(thread, entry);
            state = atomic_load(&entry->state);
        }
        if (state == CONTEXT_FREE)
            return NULL;
        if (atomic_load(&entry->context) == context)
            return state == CONTEXT_READY ? entry : NULL;
    }
    return NULL;
}

void hashing_prepare(struct thread *thread, int device)
{
    if (!shim.hashing || atomic_load(&shim.captures) > 0)
        return;
    bool switched = gpu_switch_device(thread, device);
    if (prepare_page(thread))
        current(thread, device);
    gpu_restore_device(thread, switched);
}

static struct hash_entry *take_entry(uint64_t *ticket)
{
    struct ring_file *file = shim.file;
    *ticket = atomic_fetch_add_explicit(&file->hash_tickets, 1, memory_order_relaxed) + 1;
    for (uint64_t i = 0; i < PROBES; i++) {
        struct hash_entry *entry = &ring_hashes(file)[(*ticket + i) % file->hash_entries];
        uint64_t nobody = 0;
        if (atomic_load_explicit(&entry->taken, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&entry->taken, &nobody, *ticket,
                                                    memory_order_acquire, memory_order_relaxed))
            return entry;
    }
    return NULL;
}

static bool launch(const struct kernel_context *kernel, const struct hash_job *job,
                   uint64_t pointer, uint64_t bytes, struct hash_entry *entry, uint64_t ticket)
{
    int datatype = job->datatype, partial = (int)(entry - ring_hashes(shim.file));
    CUdeviceptr found = page.address +
                        (CUdeviceptr)((char *)&entry->found - (char *)ring_hashes(shim.file));
    void *arguments[] = {&pointer, &bytes, &datatype, &found, &ticket, &partial};
    return REAL_HELPER(cuLaunchKernel)(kernel->function, payload_blocks(bytes, kernel->blocks), 1,
                                       1, PAYLOAD_BLOCK, 1, 1, 0, (CUstream)(uintptr_t)job->stream,
                                       arguments, NULL) == CUDA_SUCCESS;
}

/* Which hashes the operation will have on this rank, a bit each. */
static uint8_t expected(const struct hash_job *job, enum hash_what what)
{
    if (what == HASH_NAMED)
        return 1 << HASH_NAMED;
    return (uint8_t)((job->send_bytes ? 1 << HASH_SEND_BEFORE : 0) |
                     (job->send_after ? 1 << HASH_SEND_AFTER : 0) |
                     (job->recv_after ? 1 << HASH_RECV_AFTER : 0));
}

static void describe(struct hash_entry *entry, const struct hash_job *job, enum hash_what what,
                     uint64_t name, uint64_t bytes)
{
    entry->comm = job->comm;
    entry->number = job->number;
    entry->bytes = bytes;
    entry->serial = job->serial;
    entry->name = name;
    entry->rank = job->rank;
    entry->what = (uint8_t)what;
    entry->expects = expected(job, what);
    entry->api = job->api;
}

bool hashing_kernel_run(struct thread *thread, const struct hash_job *job, enum hash_what what,
                        uint64_t name, uint64_t pointer, uint64_t bytes)
{
    if (atomic_load_explicit(&page.state, memory_order_acquire) != PAGE_READY || !bytes)
        return false;
    bool switched = gpu_switch_device(thread, job->device), launched = false;
    const struct kernel_context *kernel = current(thread, job->device);
    uint64_t ticket;
    struct hash_entry *entry = kernel ? take_entry(&ticket) : NULL;
    if (entry) {
        describe(entry, job, what, name, bytes);
        launched = launch(kernel, job, pointer, bytes, entry, ticket);
        if (!launched)
            atomic_store_explicit(&entry->taken, 0, memory_order_release);
    }
    if (!launched)
        atomic_fetch_add_explicit(&shim.file->hash_lost, 1, memory_order_relaxed);
    gpu_restore_device(thread, switched);
    return launched;
}
