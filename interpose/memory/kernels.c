/* kernels.c: finds the names and parameters of kernels. */
#include "interpose/memory/kernels.h"

#include <sched.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/real/resolve.h"
#include "interpose/shim/forget.h"
#include "lib/trace/unseen.h"

enum { BUILD_YIELDS = 1000 };

static struct {
    struct kernel kernel[KERNELS_MAX];
    _Atomic uint32_t epoch; /* goes up when device code is unloaded */
    _Atomic bool has_noticed_symmetric;
} kernels;

void kernels_forked(void)
{
    forget_state(&kernels, sizeof kernels);
}

static const char *kernel_name(const void *function, enum kernel_kind kind)
{
    const char *name = NULL;
    if (kind == KERNEL_FUNCTION) {
        __typeof__(&cuFuncGetName) get = REAL_HELPER(cuFuncGetName);
        if (get && get(&name, (CUfunction)function) == CUDA_SUCCESS)
            return name;
    }
    if (kind != KERNEL_SYMBOL) {
        __typeof__(&cuKernelGetName) get = REAL_HELPER(cuKernelGetName);
        return get && get(&name, (CUkernel)function) == CUDA_SUCCESS ? name : NULL;
    }
    __typeof__(&cudaFuncGetName) get = REAL_HELPER(cudaFuncGetName);
    if (!get || !gpu_may_query())
        return NULL;
    if (get(&name, function) == cudaSuccess)
        return name;
    gpu_forget_error();
    return NULL;
}

static CUfunction function_of(const void *symbol)
{
    __typeof__(&cudaGetFuncBySymbol) get = REAL_HELPER(cudaGetFuncBySymbol);
    cudaFunction_t function = NULL;
    if (!get || !gpu_may_query())
        return NULL;
    if (get(&function, symbol) == cudaSuccess)
        return (CUfunction)function;
    gpu_forget_error();
    return NULL;
}

/* The layout of one parameter, queried in the ways that the kind of handle allows. */
static bool query_parameter(const void *handle, enum kernel_kind kind, CUfunction function,
                            uint32_t index, size_t *offset, size_t *bytes)
{
    __typeof__(&cuFuncGetParamInfo) of_function = REAL_HELPER(cuFuncGetParamInfo);
    __typeof__(&cuKernelGetParamInfo) of_kernel = REAL_HELPER(cuKernelGetParamInfo);
    if (function && of_function && of_function(function, index, offset, bytes) == CUDA_SUCCESS)
        return true;
    return kind != KERNEL_SYMBOL && of_kernel &&
           of_kernel((CUkernel)handle, index, offset, bytes) == CUDA_SUCCESS;
}

/* What the name says of a parameter's size; 0: nothing. */
static uint32_t named_bytes(const struct mangled_parameter *parameter)
{
    uint32_t pointers = parameter->kind == MANGLED_CLASS ? parameter->pointers
                                                         : parameter->kind != MANGLED_NUMBER;
    return pointers * (uint32_t)sizeof(void *);
}

static void read_parameters(struct kernel *kernel, const void *handle, enum kernel_kind kind,
                            const char *name)
{
    CUfunction function = kind == KERNEL_FUNCTION ? (CUfunction)handle : NULL;
    if (kind == KERNEL_SYMBOL)
        function = function_of(handle);
    size_t offset, bytes;
    uint32_t count = 0;
    while (count < KERNEL_PARAMETERS &&
           query_parameter(handle, kind, function, count, &offset, &bytes)) {
        kernel->parameter[count].offset = (uint32_t)offset;
        kernel->parameter[count].bytes = (uint32_t)bytes;
        kernel->parameter[count].kind = bytes == sizeof(void *) ? MANGLED_UNKNOWN : MANGLED_CLASS;
        if (name) {
            kernel->parameter[count].addresses = by_value_addresses(name, (uint32_t)bytes);
            kernel->parameter[count].lists = tensor_lists_find(name, count, (uint32_t)bytes);
        }
        count++;
    }
    struct mangled_parameter said[KERNEL_PARAMETERS];
    int named = name ? mangled_parameters(name, said, KERNEL_PARAMETERS) : -1;
    for (int i = 0; i < named && (!count || named == (int)count); i++) {
        kernel->parameter[i].kind = (uint8_t)said[i].kind;
        kernel->parameter[i].reads = said[i].of_const;
        if (said[i].kind == MANGLED_CLASS && said[i].is_view)
            kernel->parameter[i].addresses = (struct by_value){0, 1, !said[i].of_const, 8, 0};
        /* A driver older than 12.4 knows no sizes: pointers and arrays of them have one, other
         * classes go unsearched. */
        if (!count)
            kernel->parameter[i].bytes = named_bytes(&said[i]);
    }
    kernel->whole = count ? count < KERNEL_PARAMETERS : named >= 0;
    for (int i = 0; i < named && !count; i++)
        kernel->whole &= said[i].kind == MANGLED_NUMBER || named_bytes(&said[i]);
    kernel->count = count || named < 0 ? count : (uint32_t)named;
}

/* Kernels of PyTorch's symmetric memory read and write other ranks' memory themselves. */
static void notice_symmetric_memory(struct shim_thread *thread, const char *name)
{
    static const char text[] =
        "operations of PyTorch's symmetric memory, which kernels make themselves";
    bool is_one = strstr(name, "SymmetricMemory") || strstr(name, "symmetric_memory");
    if (!is_one || atomic_exchange(&kernels.has_noticed_symmetric, true))
        return;
    struct record record = {
        .range = {.text = emit_string(thread, text, sizeof text - 1), .id = UNSEEN_DEVICE_NCCL}};
    emit_notice(thread, &record, API_notice_blind);
}

static void build_kernel(struct shim_thread *thread, struct kernel *kernel, const void *function,
                         enum kernel_kind kind)
{
    uint32_t epoch = atomic_load_explicit(&kernels.epoch, memory_order_acquire);
    const char *name = kernel_name(function, kind);
    read_parameters(kernel, function, kind, name);
    kernel->known = name ? known_kernel_find(name) : (struct known_kernel){0};
    kernel->name = name ? emit_string(thread, name, strlen(name)) : 0;
    if (name)
        notice_symmetric_memory(thread, name);
    kernel->epoch = epoch;
    atomic_store_explicit(&kernel->ready, 1, memory_order_release);
}

/* Built by another thread just now; it takes microseconds. */
static bool wait_built(struct kernel *kernel)
{
    for (int yields = 0; !atomic_load_explicit(&kernel->ready, memory_order_acquire); yields++)
        if (yields == BUILD_YIELDS || sched_yield())
            return false;
    return true;
}

const struct kernel *kernels_find(struct shim_thread *thread, const void *function,
                                  enum kernel_kind kind)
{
    uint64_t at = (uintptr_t)function * 0x9e3779b97f4a7c15u >> 40;
    for (int i = 0; i < KERNELS_MAX; i++, at++) {
        struct kernel *kernel = &kernels.kernel[at % KERNELS_MAX];
        const void *found = atomic_load_explicit(&kernel->function, memory_order_acquire);
        if (!found && atomic_compare_exchange_strong(&kernel->function, &found, function)) {
            build_kernel(thread, kernel, function, kind);
            return kernel;
        }
        if (found != function)
            continue;
        if (!wait_built(kernel))
            return NULL;
        uint32_t ready = 1;
        if (kernel->epoch != atomic_load_explicit(&kernels.epoch, memory_order_acquire) &&
            atomic_compare_exchange_strong(&kernel->ready, &ready, 0))
            build_kernel(thread, kernel, function, kind);
        return wait_built(kernel) ? kernel : NULL;
    }
    return NULL;
}

void kernels_forget(void)
{
    atomic_fetch_add_explicit(&kernels.epoch, 1, memory_order_release);
}
