/* by_value.c: the parameters of PyTorch's elementwise and reducing kernels.
 *
 * They are structs that have room for the sizes and strides of 25 dimensions. What belongs to
 * dimensions that the tensors do not have is not initialized: it may be the address of any tensor
 * of an earlier launch, so it must not be read. */
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
            found = (struct by_value){offset_of_addresses(tensors), tensors, 1};
    return found;
}

/* reduce_kernel: after sizes and strides the input, two results, three buffers for intermediate
 * results, and 16 bytes of numbers. */
static struct by_value reduction_addresses(uint32_t bytes)
{
    struct by_value found = {bytes - REDUCTION_END, 6, 0x3e};
    return bytes >= offset_of_addresses(1) + REDUCTION_END ? found : (struct by_value){0};
}

struct by_value by_value_addresses(const char *name, uint32_t bytes)
{
    bool native = !strncmp(name, "_ZN2at6native", strlen("_ZN2at6native"));
    if (native && strstr(name, "18elementwise_kernelILi") && strstr(name, "gpu_kernel_impl"))
        return elementwise_addresses(bytes);
    if (native && strstr(name, "13reduce_kernelILi") && strstr(name, "8ReduceOpI"))
        return reduction_addresses(bytes);
    return (struct by_value){0};
}
