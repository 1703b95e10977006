/* pytorch.c: the few kernels of PyTorch by which programs decide what they call next.
 *
 * Ranks exchange Python objects, sizes and "I have no more batches" as small tensors. They are
 * filled, concatenated, compared and reduced on the GPU, then read by the host:
 * broadcast_object_list, all_gather_object, DCP's plans, Join. If these kernels did nothing, such
 * programs would fail or hang only here. All other kernels of PyTorch compute nothing.
 *
 * A kernel is recognised by its whole mangled name, so that one of another shape stays without a
 * twin, and nothing is written outside of the allocation that a pointer is in. */
#include "emu/core/pytorch.h"

#include <stdint.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/kernel.h"

size_t emu_room_behind(const void *pointer)
{
    struct emu_memory memory;

    return emu_memory_find(pointer, &memory) ? memory.bytes - ((uintptr_t)pointer - memory.base)
                                             : 0;
}

/* c10::ScalarType; integers are 0 to 4. */
enum { TYPE_BOOL = 11 };

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
    if (operation < 0 || operation > 3 || count < 0 || (size_t)count > emu_room_behind(data[0]) ||
        (size_t)count * 8 > emu_room_behind(data[1]) ||
        (size_t)count * 8 > emu_room_behind(data[2]))
        return;
    for (int32_t i = 0; i < count; i++) {
        int64_t a, b;

        memcpy(&a, data[1] + (size_t)i * 8, sizeof(a));
        memcpy(&b, data[2] + (size_t)i * 8, sizeof(b));
        data[0][i] = (bool[]){a >= b, a > b, a <= b, a < b}[operation];
    }
}

/* int64: a + scale * b of two tensors; a tensor plus a number. */
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
    int64_t number[2], a; /* the number, and its scale */
    char *data[2];

    (void)grid;
    memcpy(&count, args[0], sizeof(count));
    memcpy(number, args[1], sizeof(number));
    memcpy(data, args[2], sizeof(data));
    for (int i = 0; i < 2; i++)
        if (count < 0 || (size_t)count * 8 > emu_room_behind(data[i]))
            return;
    for (int32_t i = 0; i < count; i++) {
        memcpy(&a, data[1] + (size_t)i * 8, sizeof(a));
        a = (int64_t)((uint64_t)a + (uint64_t)number[0] * (uint64_t)number[1]);
        memcpy(data[0] + (size_t)i * 8, &a, sizeof(a));
    }
}

/* Integers, or bool, to bool: torch.any of one number. Parameters 5 and 6 are a type and its bytes.
 */
static void cast_to_bool(const struct twin_grid *grid, void *const *args)
{
    struct {
        int8_t type;
        uint32_t bytes;
    } from, to;
    int32_t count;
    char *data[2];

    (void)grid;
    memcpy(&count, args[0], sizeof(count));
    memcpy(data, args[2], sizeof(data));
    memcpy(&from, args[5], sizeof(from));
    memcpy(&to, args[6], sizeof(to));
    if (count < 0 || to.bytes != 1 || from.bytes > 8 || (from.type > 4 && from.type != TYPE_BOOL) ||
        (size_t)count > emu_room_behind(data[0]) ||
        (size_t)count * from.bytes > emu_room_behind(data[1]))
        return;
    for (int32_t i = 0; i < count; i++)
        data[0][i] = memcmp(data[1] + (size_t)i * from.bytes, &(int64_t){0}, from.bytes) != 0;
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
    {"NS0_21CUDAFunctorOnSelf_addIlEE",
     "IPcLm2EE",
     {"addition of PyTorch", "i[16][16]", add_number}},
};

/* at::native::vectorized_elementwise_kernel<N, FUNCTOR, array of addresses> and the same unrolled,
 * without conversions. */
static const struct twin *find_elementwise(const char *mangled)
{
    static const struct twin to_bool = {"cast to bool", "i[1][16][1][1][8][8]", cast_to_bool};
    const char *functor;

    if (strstr(mangled, "27unrolled_elementwise_kernelI") && strstr(mangled, "IPcLm2EE") &&
        strstr(mangled, "direct_copy_kernel_cuda") && strstr(mangled, "UlbE") &&
        strstr(mangled, "LoadWithCast"))
        return &to_bool;
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

const struct twin *emu_pytorch_find(const char *mangled, size_t bytes)
{
    const struct twin *found;

    if (strncmp(mangled, "_ZN2at6native", strlen("_ZN2at6native")))
        return NULL;
    found = find_elementwise(mangled);
    if (!found)
        found = emu_pytorch_find_cat(mangled);
    return found ? found : emu_pytorch_find_reduction(mangled, bytes);
}
