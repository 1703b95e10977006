/* pytorch_cat.c: PyTorch's concatenation (torch.cat) of up to 4 dimensions. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "emu/core/kernel.h"
#include "emu/core/pytorch.h"

enum { CAT_DIMS = 4, CAT_VECTOR = 16 };

/* The template arguments of a kernel that concatenates. */
struct cat_shape {
    unsigned bytes, dims; /* of an element, of a tensor */
    unsigned slots;       /* tensors that one launch has room for */
    unsigned strides;     /* slots of strides; 1: all tensors are contiguous */
    bool vectors;         /* sizes and strides of the result are in vectors of 16 bytes */
};

struct cat_sizes {
    uint32_t size[CAT_DIMS], stride[CAT_DIMS];
};

/* Where the parameter of this shape has what it says of tensor `which`. */
struct cat_piece {
    const char *data;
    uint32_t offset, size, count; /* along the dimension; count: elements */
    bool contiguous;
    struct cat_sizes sizes;
};

static struct cat_piece read_piece(const char *all, const struct cat_shape *shape, unsigned which)
{
    struct cat_piece piece = {0};
    const char *numbers = all + (size_t)shape->slots * sizeof(char *);
    size_t row = (size_t)shape->slots * sizeof(uint32_t);

    memcpy(&piece.data, all + which * sizeof(char *), sizeof(piece.data));
    memcpy(&piece.offset, numbers + which * 4, 4);
    memcpy(&piece.size, numbers + row + which * 4, 4);
    memcpy(&piece.count, numbers + 2 * row + which * 4, 4);
    piece.contiguous = shape->strides == 1 || numbers[3 * row + which];
    if (!piece.contiguous)
        memcpy(&piece.sizes, numbers + 3 * row + shape->slots + which * sizeof(piece.sizes),
               sizeof(piece.sizes));
    return piece;
}

/* The position of element `i` of a tensor of `size` along dimension `along`. */
static size_t position(const struct cat_sizes *sizes, unsigned dims, unsigned along, uint32_t size,
                       size_t i)
{
    size_t at = 0;

    for (unsigned d = dims - 1; d > 0; d--) {
        uint32_t extent = d == along ? size : sizes->size[d];

        if (!extent)
            return SIZE_MAX;
        at += i % extent * sizes->stride[d];
        i /= extent;
    }
    return at + i * sizes->stride[0];
}

static void copy_piece(const struct cat_shape *shape, struct cat_piece piece, char *out,
                       const struct cat_sizes *sizes, unsigned along, uint32_t step)
{
    size_t unit = shape->bytes, start = (size_t)piece.offset * step, room = emu_room_behind(out);
    size_t given = emu_room_behind(piece.data);

    if (shape->vectors) { /* then `step` is the number of elements behind the dimension */
        size_t each = CAT_VECTOR / shape->bytes;

        unit = CAT_VECTOR;
        start /= each;
        piece.size = (uint32_t)((size_t)piece.size * step / each);
        piece.count = (uint32_t)(piece.count / each);
    }
    for (size_t i = 0; i < piece.count; i++) {
        size_t to = position(sizes, shape->dims, along, piece.size, i);
        size_t from = i;

        if (!piece.contiguous)
            from = position(&piece.sizes, shape->dims, along, piece.size, i);
        if (to >= room / unit || start + to >= room / unit || from >= given / unit)
            return;
        memcpy(out + (start + to) * unit, piece.data + from * unit, unit);
    }
}

/* Parameters: the result, the tensors, the result's sizes, the dimension, and a step along it. The
 * grid has a row for each tensor. */
static void concatenate(const struct twin_grid *grid, void *const *args,
                        const struct cat_shape *shape)
{
    struct cat_sizes sizes;
    int32_t along;
    uint32_t step;
    char *out;

    memcpy(&out, args[0], sizeof(out));
    memcpy(&sizes, args[2], sizeof(sizes));
    memcpy(&along, args[3], sizeof(along));
    memcpy(&step, args[4], sizeof(step));
    for (unsigned i = 0; i < grid->grid[1] && i < shape->slots; i++)
        copy_piece(shape, read_piece(args[1], shape, i), out, &sizes, (unsigned)along, step);
}

#define CONTIGUOUS "P[2720][32]ii" /* 128 tensors: 8 + 3 * 4 + 1 bytes each, and 32 */
#define STRIDED    "P[3392][32]ii" /* 64 tensors: 8 + 3 * 4 + 1 + 32 bytes each */

#define CAT(form, bytes, dims, slots, strides, vectors)                                        \
    static void cat_##form##_##bytes##_##dims(const struct twin_grid *grid, void *const *args) \
    {                                                                                          \
        static const struct cat_shape shape = {bytes, dims, slots, strides, vectors};          \
                                                                                               \
        concatenate(grid, args, &shape);                                                       \
    }
#define CAT_FORMS(bytes, dims)             \
    CAT(plain, bytes, dims, 128, 1, false) \
    CAT(vector, bytes, dims, 128, 1, true) \
    CAT(strided, bytes, dims, 64, 64, false)
#define CAT_OF(EACH, bytes) EACH(bytes, 1) EACH(bytes, 2) EACH(bytes, 3) EACH(bytes, 4)
#define CAT_ALL(EACH)       CAT_OF(EACH, 1) CAT_OF(EACH, 2) CAT_OF(EACH, 4) CAT_OF(EACH, 8)
CAT_ALL(CAT_FORMS)

#define CAT_ROW(bytes, dims)                                                \
    {bytes,                                                                 \
     dims,                                                                  \
     {"concatenation of PyTorch", CONTIGUOUS, cat_plain_##bytes##_##dims},  \
     {"concatenation of PyTorch", CONTIGUOUS, cat_vector_##bytes##_##dims}, \
     {"concatenation of PyTorch", STRIDED, cat_strided_##bytes##_##dims}},
static const struct {
    unsigned bytes, dims;
    struct twin plain, vector, strided;
} cats[] = {CAT_ALL(CAT_ROW)};

/* at::native::(anonymous)::CatArrayBatchedCopy*<OpaqueType<BYTES>, unsigned, DIMS, SLOTS, STRIDES>
 */
const struct twin *emu_pytorch_find_cat(const char *mangled)
{
    const char *kernel = strstr(mangled, "CatArrayBatchedCopy");
    const char *type = kernel ? strstr(kernel, "OpaqueTypeILj") : NULL;
    unsigned bytes, dims, slots, strides;

    if (!type ||
        sscanf(type, "OpaqueTypeILj%uEEEjLi%uELi%uELi%uE", &bytes, &dims, &slots, &strides) != 4)
        return NULL;
    for (size_t i = 0; i < sizeof(cats) / sizeof(cats[0]); i++) {
        if (cats[i].bytes != bytes || cats[i].dims != dims)
            continue;
        if (slots == 64 && strides == 64)
            return &cats[i].strided;
        if (slots != 128 || strides != 1)
            return NULL;
        return strstr(kernel, "CatArrayBatchedCopy_vectorizedI") == kernel ? &cats[i].vector
                                                                           : &cats[i].plain;
    }
    return NULL;
}
