/* pytorch.c: the few kernels of PyTorch by which programs decide what they call next.
 *
 * Ranks exchange Python objects, sizes and "I have no more batches" as small tensors. They are
 * filled, concatenated and compared on the GPU, then read by the host: broadcast_object_list,
 * all_gather_object, DCP's plans, Join. If these kernels did nothing, such programs would fail or
 * hang only here. All other kernels of PyTorch compute nothing.
 *
 * A kernel is recognised by its whole mangled name, so that one of another shape stays without a
 * twin, and nothing is written outside of the allocation that a pointer is in. */
#include "emu/core/pytorch.h"

#include <stdint.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/kernel.h"

#define SIZE_OF_REDUCTION "1056"

size_t emu_room_behind(const void *pointer)
{
    struct emu_memory memory;

    return emu_memory_find(pointer, &memory)
               ? memory.bytes - ((uintptr_t)pointer - memory.base)
               : 0;
}

/* Parameters of elementwise kernels: the number of elements, the functor, the addresses. */
static void fill_elements(void *const *args, size_t bytes)
{
    int32_t count;
    char *out;

    memcpy(&count, args[0], sizeof(count));
    memcpy(&out, args[2], sizeof(out));
    if (count < 0 || (size_t)count * bytes > emu_room_behind(out))
        return;
    for (int32_t i = 0; i < count; i++)
        memcpy(out + (size_t)i * bytes, args[1], bytes);
}

#define FILL(bytes)                                                           \
    static void fill_##bytes(const struct twin_grid *grid, void *const *args) \
    {                                                                         \
        (void)grid;                                                           \
        fill_elements(args, bytes);                                           \
    }
FILL(1)
FILL(2)
FILL(4)
FILL(8)

/* Results, and two addresses of int64. The functor is a number: >=, >, <=, <. */
static void compare_int64(const struct twin_grid *grid, void *const *args)
{
    int32_t count, operation;
    char *data[3];

    (void)grid;
    memcpy(&count, args[0], sizeof(count));
    memcpy(&operation, args[1], sizeof(operation));
    memcpy(data, args[2], sizeof(data));
    if (count < 0 || (size_t)count > emu_room_behind(data[0]) ||
        (size_t)count * 8 > emu_room_behind(data[1]) || (size_t)count * 8 > emu_room_behind(data[2]))
        return;
    for (int32_t i = 0; i < count; i++) {
        int64_t a, b;

        memcpy(&a, data[1] + (size_t)i * 8, sizeof(a));
        memcpy(&b, data[2] + (size_t)i * 8, sizeof(b));
        data[0][i] = (char)(operation == 0   ? a >= b
                            : operation == 1 ? a > b
                            : operation == 2 ? a <= b
                                             : a < b);
    }
}

/* int64: a sum of two tensors, of which the second is scaled; a sum of a tensor and a number. */
static void add_int64(const struct twin_grid *grid, void *const *args)
{
    int32_t count;
    int64_t scale, a, b;
    char *data[3];

    (void)grid;
    memcpy(&count, args[0], sizeof(count));
    memcpy(&scale, args[1], sizeof(scale));
    memcpy(data, args[2], sizeof(data));
    for (int i = 0; i < 3; i++)
        if (count < 0 || (size_t)count * 8 > emu_room_behind(data[i]))
            return;
    for (int32_t i = 0; i < count; i++) {
        memcpy(&a, data[1] + (size_t)i * 8, sizeof(a));
        memcpy(&b, data[2] + (size_t)i * 8, sizeof(b));
        a = (int64_t)((uint64_t)a + (uint64_t)b * (uint64_t)scale);
        memcpy(data[0] + (size_t)i * 8, &a, sizeof(a));
    }
}

static void add_number(const struct twin_grid *grid, void *const *args)
{
    int32_t count;
    int64_t operand[2], a; /* the number, and its scale */
    char *data[2];

    (void)grid;
    memcpy(&count, args[0], sizeof(count));
    memcpy(operand, args[1], sizeof(operand));
    memcpy(data, args[2], sizeof(data));
    for (int i = 0; i < 2; i++)
        if (count < 0 || (size_t)count * 8 > emu_room_behind(data[i]))
            return;
    for (int32_t i = 0; i < count; i++) {
        memcpy(&a, data[1] + (size_t)i * 8, sizeof(a));
        a = (int64_t)((uint64_t)a + (uint64_t)operand[0] * (uint64_t)operand[1]);
        memcpy(data[0] + (size_t)i * 8, &a, sizeof(a));
    }
}

/* The parameter of the reductions of int64, as the host lays it out. */
struct reduction {
    char function;
    int64_t identity;
    int32_t element_bytes, inputs, outputs, steps[3], input_steps[3], output_steps[2], block[3];
    bool vectors;
    int32_t output_vector;
    struct {
        int32_t dims;
        uint32_t divider[25][3], stride[25][1]; /* in bytes */
    } input;
    struct {
        int32_t dims;
        uint32_t divider[25][3], stride[25][2];
    } output;
    const char *from;
    char *to[2];
    void *buffers[3];
    int64_t base;
    bool accumulate, final;
    int32_t results;
};

/* Of one row to one number. */
static void sum_int64(const struct twin_grid *grid, void *const *args)
{
    struct reduction all;
    uint64_t sum = 0, value;
    size_t stride;

    (void)grid;
    memcpy(&all, args[0], sizeof(all));
    if (all.element_bytes != 8 || all.outputs != 1 || all.inputs <= 0 || all.input.dims > 1 ||
        all.accumulate || emu_room_behind(all.to[0]) < sizeof(sum))
        return;
    stride = all.input.dims == 1 ? all.input.stride[0][0] : sizeof(value);
    if (((size_t)all.inputs - 1) * stride + sizeof(value) > emu_room_behind(all.from))
        return;
    for (int32_t i = 0; i < all.inputs; i++) {
        memcpy(&value, all.from + (size_t)i * stride, sizeof(value));
        sum += value;
    }
    memcpy(all.to[0], &sum, sizeof(sum));
}

static const struct {
    size_t bytes;
    const char *types[8]; /* as mangled */
    struct twin twin;
} fills[] = {
    {1, {"bE", "aE", "hE"}, {"fill of PyTorch", "i[1]P", fill_1}},
    {2, {"sE", "tE", "N3c104HalfEE", "N3c108BFloat16EE"}, {"fill of PyTorch", "i[2]P", fill_2}},
    {4, {"iE", "jE", "fE"}, {"fill of PyTorch", "i[4]P", fill_4}},
    {8, {"lE", "mE", "dE", "N3c107complexIfEEE"}, {"fill of PyTorch", "ilP", fill_8}},
};
static const struct {
    const char *functor, *addresses;
    struct twin twin;
} numbers[] = {
    {"14CompareFunctorIlEE", "IPcLm3EE", {"comparison of PyTorch", "i[4][24]", compare_int64}},
    {"NS0_15CUDAFunctor_addIlEE", "IPcLm3EE", {"addition of PyTorch", "il[24]", add_int64}},
    {"NS0_21CUDAFunctorOnSelf_addIlEE", "IPcLm2EE", {"addition of PyTorch", "i[16][16]", add_number}},
};

/* at::native::vectorized_elementwise_kernel<N, FUNCTOR, array of addresses> and the same unrolled,
 * without conversions. */
static const struct twin *find_elementwise(const char *mangled)
{
    const char *functor;

    if (!strstr(mangled, "29vectorized_elementwise_kernelILi") &&
        !(strstr(mangled, "27unrolled_elementwise_kernelI") && strstr(mangled, "LoadWithoutCast")))
        return NULL;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strstr(mangled, numbers[i].functor) && strstr(mangled, numbers[i].addresses) &&
            !strstr(mangled, "nv_dl_tag"))
            return &numbers[i].twin;
    functor = strstr(mangled, "NS0_11FillFunctorI");
    if (!functor || !strstr(mangled, "IPcLm1EE"))
        return NULL;
    functor += strlen("NS0_11FillFunctorI");
    for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++)
        for (const char *const *type = fills[i].types; *type; type++)
            if (!strncmp(functor, *type, strlen(*type)))
                return &fills[i].twin;
    return NULL;
}

/* at::native::reduce_kernel<THREADS, 1, ReduceOp<int64, a functor's operator, ...>> */
static const struct twin *find_sum(const char *mangled, size_t bytes)
{
    static const struct twin sum = {"sum of PyTorch", "[" SIZE_OF_REDUCTION "]", sum_int64};

    _Static_assert(sizeof(struct reduction) == 1056, "SIZE_OF_REDUCTION");
    return bytes == sizeof(struct reduction) && strstr(mangled, "13reduce_kernelILi") &&
                   strstr(mangled, "ELi1ENS0_8ReduceOpIl") && strstr(mangled, "sum_functorIlll")
               ? &sum
               : NULL;
}

const struct twin *emu_pytorch_find(const char *mangled, size_t bytes)
{
    const struct twin *found;

    if (strncmp(mangled, "_ZN2at6native", strlen("_ZN2at6native")))
        return NULL;
    found = find_elementwise(mangled);
    if (!found)
        found = emu_pytorch_find_cat(mangled);
    return found ? found : find_sum(mangled, bytes);
}
