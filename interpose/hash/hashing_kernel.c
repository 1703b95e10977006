/* hashing_kernel.c: loads and launches the kernel that hashes a buffer. Driver calls only: they
 * leave no error behind that the program could see. */
#include "interpose/hash/hashing_kernel.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/real/resolve.h"
#include "interpose/ring/files.h"
#include "interpose/shim/forget.h"
#include "kernels/payload.h"
#include "lib/trace/unseen.h"

#define KERNEL "_Z21ddpcheck_payload_hashPKvmiP13payload_foundmi"

enum {
    CONTEXTS = 64,
    PROBES = 64,
    BLOCKS_PER_MULTIPROCESSOR = 4,
    MULTIPROCESSORS_USUAL = 100,
    PREPARE_WAIT_MS = 2000
};
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
/* The same as PTX of an old ISA, which any driver since CUDA 10.0 compiles: machine code of CUDA 13
 * needs driver 580 (CUDA Compatibility, "Minor Version Compatibility"). */
extern const char hashing_text[];

/* Modules belong to contexts. */
struct kernel_context {
    _Atomic uint32_t state;
    _Atomic(void *) context;
    CUfunction function;
    unsigned blocks; /* at most */
};

enum page_state { PAGE_UNKNOWN, PAGE_PREPARING, PAGE_READY, PAGE_NONE };

static struct {
    struct kernel_context context[CONTEXTS];
    _Atomic uint32_t page_state; /* enum page_state */
    CUdeviceptr page;            /* the entries of the ring file, as the GPU sees them */
} kernel;

void hashing_kernel_forked(void)
{
    forget_state(&kernel, sizeof kernel);
}

/* On stderr and in the trace. Returns the id of the text. */
static uint64_t report_reason(struct shim_thread *thread, const char *why)
{
    char text[160];
    int bytes = snprintf(text, sizeof text, "payloads (--hash): %s", why);
    problem_print(PROBLEM_HASHING, "payloads are not hashed: %s", why);
    struct record blind = {
        .range = {.text = emit_string(thread, text, (uint64_t)bytes), .id = UNSEEN_PAYLOADS}};
    emit_notice(thread, &blind, API_notice_blind);
    return blind.range.text;
}

static void emit_hashing(struct shim_thread *thread, const char *why)
{
    struct record record = {.hashing = {.entries = why ? 0 : files_hash_entries()}};
    if (why)
        record.hashing.text = report_reason(thread, why);
    emit_notice(thread, &record, API_notice_hashing);
}

/* Makes the entries writable for all devices. Returns NULL, or why that can't be done. */
static const char *register_entries(void)
{
    __typeof__(&cuMemHostRegister) host_register = REAL_HELPER(cuMemHostRegister);
    __typeof__(&cuMemHostGetDevicePointer) device_pointer = REAL_HELPER(cuMemHostGetDevicePointer);
    struct ring_file *file = shim.file;
    if (!hashing_image_bytes)
        return "this ddpcheck was built without nvcc and has no kernel for it";
    if (!files_hash_entries())
        return "there was no room for the hashes";
    if (!host_register || !device_pointer || !REAL_HELPER(cuModuleLoadData) ||
        !REAL_HELPER(cuModuleGetFunction) || !REAL_HELPER(cuLaunchKernel) ||
        !REAL_HELPER(cuCtxGetCurrent))
        return "the CUDA driver has not the functions that it takes";
    size_t bytes = files_hash_entries() * sizeof(struct hash_entry);
    if (host_register(ring_hashes(file), bytes,
                      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP) != CUDA_SUCCESS ||
        device_pointer(&kernel.page, ring_hashes(file), 0) != CUDA_SUCCESS)
        return files_are_in_memory() ? "the GPU can't write to the ring file"
                                     : "the ring file is on a disk, which the driver can't pin "
                                       "(free 32 MB in /dev/shm, or set TMPDIR to a tmpfs)";
    return NULL;
}

/* The operations of a thread whose communicator was created at the same time as another's have to
 * be hashed as well, so it waits until the other thread has prepared the page. That takes
 * milliseconds. */
static uint32_t wait_prepared(void)
{
    uint32_t state = PAGE_PREPARING;
    for (int tries = 0; tries < PREPARE_WAIT_MS && state == PAGE_PREPARING; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        state = atomic_load_explicit(&kernel.page_state, memory_order_acquire);
    }
    return state;
}

static bool prepare_page(struct shim_thread *thread)
{
    uint32_t state = PAGE_UNKNOWN;
    if (atomic_compare_exchange_strong(&kernel.page_state, &state, PAGE_PREPARING)) {
        const char *why = register_entries();
        emit_hashing(thread, why);
        state = why ? PAGE_NONE : PAGE_READY;
        atomic_store_explicit(&kernel.page_state, state, memory_order_release);
    }
    if (state == PAGE_PREPARING)
        state = wait_prepared();
    return state == PAGE_READY;
}

static bool load_module(CUmodule *module)
{
    return REAL_HELPER(cuModuleLoadData)(module, hashing_image) == CUDA_SUCCESS ||
           REAL_HELPER(cuModuleLoadData)(module, hashing_text) == CUDA_SUCCESS;
}

static void load_kernel(struct shim_thread *thread, struct kernel_context *entry)
{
    __typeof__(&cuCtxGetDevice) get_device = REAL_HELPER(cuCtxGetDevice);
    __typeof__(&cuDeviceGetAttribute) get_attribute = REAL_HELPER(cuDeviceGetAttribute);
    CUmodule module;
    CUdevice device;
    int multiprocessors = 0;
    /* The function is loaded here even where CUDA loads lazily: that may wait for the device, and
     * so must not happen beside collectives (CUDA programming guide, "Lazy Loading": potential
     * hazards). */
    bool usable = load_module(&module) && REAL_HELPER(cuModuleGetFunction)(&entry->function, module,
                                                                           KERNEL) == CUDA_SUCCESS;
    if (!get_device || !get_attribute || get_device(&device) != CUDA_SUCCESS ||
        get_attribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) !=
            CUDA_SUCCESS ||
        multiprocessors < 1)
        multiprocessors = MULTIPROCESSORS_USUAL;
    entry->blocks = (unsigned)multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    if (!usable)
        report_reason(thread, "the GPU's driver does not take the kernel");
    atomic_store_explicit(&entry->state, usable ? CONTEXT_READY : CONTEXT_UNUSABLE,
                          memory_order_release);
}

/* The kernel in the current context; loaded if it is not and nothing is being captured. NULL if
 * there is none. */
static const struct kernel_context *find_hashing_kernel(struct shim_thread *thread, int device)
{
    CUcontext context = gpu_current_context(device);
    if (!context)
        return NULL;
    for (int i = 0; i < CONTEXTS; i++) {
        struct kernel_context *entry = &kernel.context[i];
        uint32_t state = atomic_load_explicit(&entry->state, memory_order_acquire);
        if (state == CONTEXT_FREE && atomic_load(&shim.captures) == 0 &&
            atomic_compare_exchange_strong(&entry->state, &state, CONTEXT_LOADING)) {
            atomic_store(&entry->context, context);
            load_kernel(thread, entry);
            state = atomic_load(&entry->state);
        }
        if (state == CONTEXT_FREE)
            return NULL;
        if (atomic_load(&entry->context) == context)
            return state == CONTEXT_READY ? entry : NULL;
    }
    return NULL;
}

void hashing_prepare(struct shim_thread *thread, int device)
{
    if (!shim.hashing || atomic_load(&shim.captures) > 0)
        return;
    bool switched = gpu_switch_device(thread, device);
    int captures = gpu_relax_captures();
    if (prepare_page(thread))
        find_hashing_kernel(thread, device);
    gpu_restore_captures(captures);
    gpu_restore_device(thread, switched);
}

static struct hash_entry *take_hash_entry(uint64_t *ticket)
{
    struct ring_file *file = shim.file;
    *ticket = atomic_fetch_add_explicit(&file->hash_tickets, 1, memory_order_relaxed) + 1;
    for (uint64_t i = 0; i < PROBES; i++) {
        struct hash_entry *entry = &ring_hashes(file)[(*ticket + i) % files_hash_entries()];
        uint64_t nobody = 0;
        if (atomic_load_explicit(&entry->taken, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&entry->taken, &nobody, *ticket,
                                                    memory_order_acquire, memory_order_relaxed))
            return entry;
    }
    return NULL;
}

static bool launch_kernel(const struct kernel_context *loaded, const struct hash_job *job,
                          uint64_t pointer, uint64_t bytes, struct hash_entry *entry,
                          uint64_t ticket)
{
    int datatype = job->datatype, partial = (int)(entry - ring_hashes(shim.file));
    CUdeviceptr found = kernel.page +
                        (CUdeviceptr)((char *)&entry->found - (char *)ring_hashes(shim.file));
    void *arguments[] = {&pointer, &bytes, &datatype, &found, &ticket, &partial};
    return REAL_HELPER(cuLaunchKernel)(loaded->function, payload_blocks(bytes, loaded->blocks), 1,
                                       1, PAYLOAD_BLOCK, 1, 1, 0, (CUstream)(uintptr_t)job->stream,
                                       arguments, NULL) == CUDA_SUCCESS;
}

/* Which hashes the operation will have on this rank, a bit each. */
static uint8_t expected_hashes(const struct hash_job *job, enum hash_what what)
{
    if (what == HASH_NAMED)
        return 1 << HASH_NAMED;
    return (uint8_t)((job->send_bytes > 0) << HASH_SEND_BEFORE |
                     job->send_after << HASH_SEND_AFTER | job->recv_after << HASH_RECV_AFTER);
}

static void describe_entry(struct hash_entry *entry, const struct hash_job *job,
                           enum hash_what what, uint64_t name, uint64_t bytes)
{
    entry->comm = job->comm;
    entry->number = job->number;
    entry->bytes = bytes;
    entry->serial = job->serial;
    entry->name = name;
    entry->rank = job->rank;
    entry->what = (uint8_t)what;
    entry->expects = expected_hashes(job, what);
    entry->api = job->api;
}

bool hashing_kernel_run(struct shim_thread *thread, const struct hash_job *job, enum hash_what what,
                        uint64_t name, uint64_t pointer, uint64_t bytes)
{
    if (atomic_load_explicit(&kernel.page_state, memory_order_acquire) != PAGE_READY || !bytes)
        return false;
    bool switched = gpu_switch_device(thread, job->device), launched = false;
    const struct kernel_context *loaded = find_hashing_kernel(thread, job->device);
    uint64_t ticket;
    struct hash_entry *entry = loaded ? take_hash_entry(&ticket) : NULL;
    if (entry) {
        describe_entry(entry, job, what, name, bytes);
        launched = launch_kernel(loaded, job, pointer, bytes, entry, ticket);
        if (!launched)
            atomic_store_explicit(&entry->taken, 0, memory_order_release);
    }
    if (!launched)
        atomic_fetch_add_explicit(&shim.file->hash_lost, 1, memory_order_relaxed);
    gpu_restore_device(thread, switched);
    return launched;
}
