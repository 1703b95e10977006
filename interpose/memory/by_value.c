/* by_value.c: the parameters of PyTorch's elementwise, reducing, indexing and attention kernels.
 *
 * The first three are structs that have room for the sizes and strides of 25 dimensions. What
 * belongs to dimensions that the tensors do not have is not initialized: it may be the address of
 * any tensor of an earlier launch, so it must not be read. */
#include "interpose/memory/by_value.h"

#include <stdbool.h>
#include <string.h>

enum {
    DIMENSIONS = 25,
    DIVISOR = 12, /* of a dimension's size: the number and what makes division a multiplication */
    TENSORS_MAX = 8,
    REDUCTION_END = 64 /* from the first address to the end */
};

/* elementwise_kernel: sizes and strides, the addresses (that of the result first), a functor. */
static uint32_t offset_of_addresses(uint32_t tensors)
{
    uint32_t bytes = 4 + DIMENSIONS * (DIVISOR + 4 * tensors);
    return (bytes + 7) / 8 * 8;
}

static struct by_value elementwise_addresses(uint32_t bytes)
{
    struct by_value found = {0};
    for (uint32_t tensors = 1; tensors <= TENSORS_MAX; tensors++)
        if (offset_of_addresses(tensors) + tensors * 8 <= bytes)
            found = (struct by_value){offset_of_addresses(tensors), tensors, 1, 8, 0};
    return found;
}

/* reduce_kernel: after sizes and strides the input, two results, three buffers for intermediate
 * results, and 16 bytes of numbers. */
static struct by_value reduction_addresses(uint32_t bytes)
{
    struct by_value found = {bytes - REDUCTION_END, 6, 0x3e, 8, 0};
    return bytes >= offset_of_addresses(1) + REDUCTION_END ? found : (struct by_value){0};
}

/* Kernels that index: the structs are those of lambdas, which have what they capture in the order
 * of its use, as seen in PyTorch 2.10. The addresses of index tensors are left out where they are
 * many. */
static const struct {
    const char *kernel, *lambda_of;
    struct by_value addresses;
} indexing[] = {
    {"24index_elementwise_kernelILi", "16gpu_index_kernelI", {608, 2, 1, 8, 0}},
    {"24index_elementwise_kernelILi", "22index_copy_kernel_implI", {608, 3, 1, 8, 0}},
    {"24index_elementwise_kernelILi", "22index_fill_kernel_implI", {504, 2, 1, 8, 0}},
    {"24index_elementwise_kernelILi", "16flip_kernel_implI", {504, 2, 1, 8, 0}},
    {"24index_elementwise_kernelILi", "11take_kernelE", {504, 2, 1, 432, 0}},
    {"24index_elementwise_kernelILi", "10put_kernelE", {504, 2, 2, 432, 0}},
    {"34_scatter_gather_elementwise_kernelILi", "36_cuda_scatter_gather_", {608, 3, 2, 24, 0}},
    {"34_scatter_gather_elementwise_kernelILi", "34_cuda_scatter_fill_", {504, 2, 2, 24, 0}},
};

static struct by_value indexed_addresses(const char *name, uint32_t bytes)
{
    for (size_t i = 0; i < sizeof indexing / sizeof *indexing; i++) {
        struct by_value found = indexing[i].addresses;
        if (strstr(name, indexing[i].kernel) && strstr(name, indexing[i].lambda_of) &&
            found.offset + (found.count - 1) * found.step + 8 <= bytes)
            return found;
    }
    return (struct by_value){0};
}

/* Attention, in PyTorch and in packages that have the same kernels: the struct begins with what is
 * read, which are at least queries, keys and values. */
static struct by_value attention_inputs(const char *name)
{
    static const struct {
        const char *kernel;
        uint32_t inputs_end;
    } kernels[] = {
        {"fmha_cutlassF_", 64}, {"fmha_cutlassB_", 80}, {"flash_fwd_", 24}, {"flash_bwd_", 24}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strstr(name, kernels[i].kernel))
            return (struct by_value){.inputs_end = kernels[i].inputs_end};
    return (struct by_value){0};
}

struct by_value by_value_addresses(const char *name, uint32_t bytes)
{
    bool native = !strncmp(name, "_ZN2at6native", strlen("_ZN2at6native"));
    if (native && strstr(name, "18elementwise_kernelILi") && strstr(name, "gpu_kernel_impl"))
        return elementwise_addresses(bytes);
    if (native && strstr(name, "13reduce_kernelILi") && strstr(name, "8ReduceOpI"))
        return reduction_addresses(bytes);
    return native ? indexed_addresses(name, bytes) : attention_inputs(name);
}
