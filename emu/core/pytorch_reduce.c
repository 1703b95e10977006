/* pytorch_reduce.c: PyTorch's reductions of numbers (sum, max, any ...), by the layout of its
 * ReduceOp.
 *
 * The kernel has one parameter, a struct ReduceOp (ATen/native/cuda/Reduce.cuh): the operation and
 * its identity, whose sizes follow from the types; then sizes and strides; at the end the
 * addresses. A parameter of another size has another layout: the kernel has no twin then. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/kernel.h"
#include "emu/core/pytorch.h"
#include "emu/core/smallfloat.h"

enum kind { INTEGER, UNSIGNED, REAL, HALF, BFLOAT16, BOOL };

/* A type as it is mangled. */
static const struct reduce_type {
    const char *mangled;
    uint8_t bytes;
    enum kind kind;
} types[] = {
    {"a", 1, INTEGER},
    {"s", 2, INTEGER},
    {"i", 4, INTEGER},
    {"l", 8, INTEGER},
    {"h", 1, UNSIGNED},
    {"t", 2, UNSIGNED},
    {"j", 4, UNSIGNED},
    {"m", 8, UNSIGNED},
    {"f", 4, REAL},
    {"d", 8, REAL},
    {"b", 1, BOOL},
    {"N3c104HalfE", 2, HALF},
    {"N3c108BFloat16E", 2, BFLOAT16},
};

/* What is reduced: `integer` (of UNSIGNED: its bits) or, if real, `real`. */
struct reduce_number {
    bool is_real;
    int64_t integer;
    double real;
};

struct reduce_operation {
    const char *mangled; /* part of the kernel's name that no other operation has */
    /* Takes the next number into the result; true: the result is that number. */
    bool (*take)(struct reduce_number *result, const struct reduce_number *next);
    bool picks_place; /* the result is the place of the number that `take` kept */
    bool has_factor;  /* the sum is multiplied by the functor's only member */
    bool is_bool;     /* reduces whether numbers are other than 0 */
};

static bool is_less(const struct reduce_number *a, const struct reduce_number *b)
{
    return a->is_real ? a->real < b->real : a->integer < b->integer;
}

static bool is_nan(const struct reduce_number *a)
{
    return a->is_real && a->real != a->real;
}

/* NaN wins, as PyTorch has it. */
static bool take_max(struct reduce_number *result, const struct reduce_number *next)
{
    bool taken = !is_nan(result) && (is_nan(next) || is_less(result, next));

    if (taken)
        *result = *next;
    return taken;
}

static bool take_min(struct reduce_number *result, const struct reduce_number *next)
{
    bool taken = !is_nan(result) && (is_nan(next) || is_less(next, result));

    if (taken)
        *result = *next;
    return taken;
}

static bool take_sum(struct reduce_number *result, const struct reduce_number *next)
{
    result->integer = (int64_t)((uint64_t)result->integer + (uint64_t)next->integer);
    result->real += next->real;
    return false;
}

static bool take_product(struct reduce_number *result, const struct reduce_number *next)
{
    result->integer = (int64_t)((uint64_t)result->integer * (uint64_t)next->integer);
    result->real *= next->real;
    return false;
}

static bool take_any(struct reduce_number *result, const struct reduce_number *next)
{
    result->integer |= next->integer;
    return false;
}

static bool take_all(struct reduce_number *result, const struct reduce_number *next)
{
    result->integer &= next->integer;
    return false;
}

static const struct reduce_operation operations[] = {
    {"13MaxNanFunctorI", take_max, false, false, false},
    {"13MinNanFunctorI", take_min, false, false, false},
    {"11sum_functorI", take_sum, false, false, false},
    {"12prod_functorI", take_product, false, false, false},
    {"14or_kernel_cuda", take_any, false, false, true},
    {"15and_kernel_cuda", take_all, false, false, true},
    {"NS0_7MeanOpsI", take_sum, false, true, false},
    {"NS0_9ArgMaxOpsI", take_max, true, false, false},
    {"NS0_9ArgMinOpsI", take_min, true, false, false},
};

/* The twin of one kernel. */
struct reduce_twin {
    struct twin twin;
    char params[8];
    const struct reduce_operation *operation;
    const struct reduce_type *from, *to;
    size_t bytes; /* of ReduceOp */
    struct reduce_twin *next;
};

/* Those that kernels were found to have, each once, for as long as the process runs. The look-up of
 * a kernel holds the lock of all kernels. */
static struct reduce_twin *reductions;

/* Members of ReduceOp behind the identity; each is followed by the next without a gap.
 * OffsetCalculator: a number of dimensions, their sizes (each with two numbers for a fast
 * division), their strides. */
enum { DIMENSIONS = 25 };
struct reduce_config {
    int32_t element_bytes, inputs, outputs, others[11];
    uint8_t vectorize, gap[3];
    int32_t vector;
};
struct reduce_sizes {
    int32_t dims;
    struct {
        uint32_t size, multiplier, shift;
    } dim[DIMENSIONS];
};
struct reduce_layout {
    struct reduce_config config;
    struct reduce_sizes in;
    uint32_t in_stride[DIMENSIONS][1]; /* bytes */
    struct reduce_sizes out;
    uint32_t out_stride[DIMENSIONS][2]; /* of the result, of the first number */
};
struct reduce_addresses {
    const char *from;
    char *to[2];
    void *buffers[3];
    int64_t base;
    bool accumulates, is_last;
    int32_t outputs;
};

/* Bytes of what the kernel adds up in: sums of 16-bit floats are float. */
static size_t accumulator_bytes(const struct reduce_operation *operation,
                                const struct reduce_type *from)
{
    bool wide = operation->take == take_sum || operation->take == take_product;

    return wide && (from->kind == HALF || from->kind == BFLOAT16) ? 4 : from->bytes;
}

/* Where `struct reduce_layout` begins: behind the operation (empty, or a factor) and the identity
 * (a number, or a pair of a number and its place). */
static size_t layout_offset(const struct reduce_operation *operation,
                            const struct reduce_type *from)
{
    size_t accumulator = accumulator_bytes(operation, from);

    if (operation->picks_place)
        return 24;
    return accumulator == 1 ? 4 : 2 * accumulator;
}

static bool read_layout(const struct reduce_twin *reduction, const char *all,
                        struct reduce_layout *layout)
{
    const struct reduce_config *config = &layout->config;
    int32_t expected = reduction->operation->picks_place
                           ? 16
                           : (int32_t)accumulator_bytes(reduction->operation, reduction->from);

    memcpy(layout, all + layout_offset(reduction->operation, reduction->from), sizeof(*layout));
    return config->element_bytes == expected && config->inputs > 0 && config->outputs > 0 &&
           layout->in.dims >= 0 && layout->in.dims <= DIMENSIONS && layout->out.dims >= 0 &&
           layout->out.dims <= DIMENSIONS;
}

/* Where number `i` is, in bytes. Fails (SIZE_MAX) at a dimension of size 0. */
static size_t offset_of(const struct reduce_sizes *sizes, const uint32_t *strides, size_t step,
                        size_t i)
{
    size_t offset = 0;

    for (int d = 0; d < sizes->dims; d++) {
        uint32_t size = sizes->dim[d].size;

        if (!size)
            return SIZE_MAX;
        offset += i % size * strides[(size_t)d * step];
        i /= size;
    }
    return offset;
}

static struct reduce_number load(const struct reduce_type *type, const char *from)
{
    struct reduce_number number = {.is_real = type->kind >= REAL && type->kind <= BFLOAT16};
    int64_t word = 0;
    float single;

    memcpy(&word, from, type->bytes);      /* little endian */
    int above = 64 - 8 * (int)type->bytes; /* bits */
    if (type->kind == INTEGER)
        number.integer = (int64_t)((uint64_t)word << above) >> above;
    else if (type->kind == UNSIGNED)
        number.integer = word;
    else if (type->kind == BOOL)
        number.integer = word != 0;
    else if (type->kind == HALF)
        number.real = smallfloat_load(FP16, (uint32_t)word);
    else if (type->kind == BFLOAT16)
        number.real = bf16_load((uint16_t)word);
    else if (type->bytes == 8)
        memcpy(&number.real, from, 8);
    else
        memcpy(&single, from, 4), number.real = single;
    return number;
}

static void store_element(const struct reduce_type *type, char *to, struct reduce_number number)
{
    int64_t word = number.is_real ? 0 : number.integer;
    double real = number.is_real ? number.real : (double)number.integer;
    float single = (float)real;

    if (type->kind == BOOL)
        word = number.integer != 0;
    else if (type->kind == HALF)
        word = (int64_t)smallfloat_store(FP16, single);
    else if (type->kind == BFLOAT16)
        word = bf16_store(single);
    else if (type->kind == REAL)
        memcpy(&word, type->bytes == 8 ? (void *)&real : (void *)&single, type->bytes);
    memcpy(to, &word, type->bytes);
}

static struct reduce_number truth_of(struct reduce_number number)
{
    return (struct reduce_number){.integer = number.is_real ? number.real != 0
                                                            : number.integer != 0};
}

/* One result. False where a number is in no allocation. */
static bool reduce_one(const struct reduce_twin *reduction, const struct reduce_layout *layout,
                       const char *from, size_t room, struct reduce_number *result)
{
    int64_t place = 0;

    for (int32_t i = 0; i < layout->config.inputs; i++) {
        size_t at = layout->in.dims ? offset_of(&layout->in, layout->in_stride[0], 1, (size_t)i)
                                    : (size_t)i * reduction->from->bytes;
        struct reduce_number number;

        if (at > room || room - at < reduction->from->bytes)
            return false;
        number = load(reduction->from, from + at);
        if (reduction->operation->is_bool)
            number = truth_of(number);
        if (i == 0)
            *result = number;
        else if (reduction->operation->take(result, &number))
            place = i;
    }
    if (reduction->operation->picks_place)
        *result = (struct reduce_number){.integer = place};
    return true;
}

static void reduce_grid(const struct twin_grid *grid, void *const *args)
{
    const struct reduce_twin *reduction = (const struct reduce_twin *)grid->twin;
    const char *all = args[0];
    struct reduce_addresses addresses;
    struct reduce_layout layout;
    size_t from_room, to_room;

    memcpy(&addresses, all + reduction->bytes - sizeof(addresses), sizeof(addresses));
    if (!read_layout(reduction, all, &layout) || addresses.accumulates)
        return; /* it would add to an earlier part */
    from_room = emu_room_behind(addresses.from);
    to_room = emu_room_behind(addresses.to[0]);
    for (int32_t i = 0; i < layout.config.outputs; i++) {
        size_t to = offset_of(&layout.out, &layout.out_stride[0][0], 2, (size_t)i),
               from = offset_of(&layout.out, &layout.out_stride[0][1], 2, (size_t)i);
        struct reduce_number result = {0};

        if (to > to_room || to_room - to < reduction->to->bytes || from > from_room ||
            !reduce_one(reduction, &layout, addresses.from + from, from_room - from, &result))
            return;
        if (reduction->operation->has_factor)
            result.real *= load(&types[reduction->from->bytes == 8 ? 9 : 8], all).real;
        store_element(reduction->to, addresses.to[0] + to, result);
    }
}

/* The type at `mangled`, and what follows it; S4_ stands for the type before. NULL: another one. */
static const struct reduce_type *demangle_type(const char **mangled,
                                               const struct reduce_type *before)
{
    if (before && !strncmp(*mangled, "S4_", 3)) {
        *mangled += 3;
        return before;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (!strncmp(*mangled, types[i].mangled, strlen(types[i].mangled))) {
            *mangled += strlen(types[i].mangled);
            return &types[i];
        }
    return NULL;
}

/* ReduceOp<FROM, OPERATION, unsigned, TO, N, N> */
static const struct reduce_type *read_result_type(const char *mangled,
                                                  const struct reduce_type *from)
{
    const struct reduce_type *found = NULL;

    for (const char *at = mangled; (at = strstr(at, "Ej"));) {
        const struct reduce_type *type;

        at += strlen("Ej");
        type = demangle_type(&at, from);
        if (type && !strncmp(at, "Li", 2))
            found = type;
    }
    return found;
}

/* at::native::reduce_kernel<THREADS, N, ReduceOp<FROM, OPERATION, unsigned, TO, N, N>> */
const struct twin *emu_pytorch_find_reduction(const char *mangled, size_t bytes)
{
    static const char reducing[] = "8ReduceOpI";
    const char *at = strstr(mangled, "13reduce_kernelILi") ? strstr(mangled, reducing) : NULL;
    const struct reduce_operation *operation = NULL;
    const struct reduce_type *from = NULL, *to = NULL;
    struct reduce_twin *reduction = reductions;

    if (!at)
        return NULL;
    at += strlen(reducing);
    from = demangle_type(&at, NULL);
    to = from ? read_result_type(at, from) : NULL;
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]) && !operation; i++)
        if (strstr(at, operations[i].mangled))
            operation = &operations[i];
    if (!to || !operation ||
        bytes != (layout_offset(operation, from) + sizeof(struct reduce_layout) + 7) / 8 * 8 +
                     sizeof(struct reduce_addresses))
        return NULL;
    while (reduction && (reduction->operation != operation || reduction->from != from ||
                         reduction->to != to || reduction->bytes != bytes))
        reduction = reduction->next;
    if (reduction)
        return &reduction->twin;
    reduction = calloc(1, sizeof(*reduction));
    if (!reduction)
        return NULL;
    snprintf(reduction->params, sizeof(reduction->params), "[%zu]", bytes);
    reduction->twin = (struct twin){"reduction of PyTorch", reduction->params, reduce_grid};
    reduction->operation = operation;
    reduction->from = from;
    reduction->to = to;
    reduction->bytes = bytes;
    reduction->next = reductions;
    reductions = reduction;
    return &reduction->twin;
}
