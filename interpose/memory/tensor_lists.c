/* tensor_lists.c: the layouts of PyTorch's parameters that list tensors (PyTorch 2.10 and 2.15
 * source, aten/src/ATen/native/cuda): MultiTensorApply.cuh for torch._foreach_* and the optimizers,
 * Shape.cu for torch.cat. A parameter of another size than these give is of another release, and
 * unknown. */
#include "interpose/memory/tensor_lists.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    ADDRESS = sizeof(uint64_t),
    DEPTHS = 5,
    ALL_LISTS = (1 << DEPTHS) - 1,
    GRADIENTS = 1 << 1 /* of a fused optimizer, whose first list are the parameters */
};

/* Of one launch, at most: by depth, tensors, and tensors beside numbers; blocks, each with its
 * tensor (of `index_bytes`) and its part of it (of 4). Of parameters up to 4 KiB and, from 2.14 on
 * with CUDA 13, up to 32 KiB. */
static const struct capacity {
    uint16_t tensors[DEPTHS], beside_scalars[DEPTHS];
    uint16_t blocks, index_bytes;
} capacities[] = {
    {{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, 320, 1},
    {{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, 2240, 2},
};

/* The number in what template parameters are mangled to, as in "ILi3E"; 0 if it is no depth. */
static unsigned read_depth(const char *at)
{
    unsigned depth = 0;
    return at && sscanf(at, "Li%uE", &depth) == 1 && depth <= DEPTHS ? depth : 0;
}

/* The last template arguments of most functors: depth, lists that are read, and the result's list.
 */
static uint8_t written_by_functor(const char *functor, unsigned depth)
{
    static const char *const readers[] = {"LpNormFunctorI", "LpMaxFunctorI"};
    char ending[32];
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strstr(functor, readers[i]))
            return 0;
    if (strstr(functor, "Fused"))
        return ALL_LISTS & ~GRADIENTS;
    snprintf(ending, sizeof ending, "Li%uELi", depth);
    for (const char *at = strstr(functor, ending); at; at = strstr(at + 1, ending)) {
        unsigned read, result;
        int end = 0;
        if (sscanf(at + strlen(ending) - 2, "Li%uELi%uE%n", &read, &result, &end) == 2 && end &&
            result < depth)
            return (uint8_t)(1 << result);
    }
    return ALL_LISTS;
}

/* What the name says of a TensorListMetadata, or of its forms for lists of numbers and for fused
 * optimizers. */
struct list_kind {
    unsigned depth;
    bool has_scalars, is_fused;
    const char *functor;
};

static bool has_size(const struct capacity *capacity, const struct list_kind *kind, uint32_t bytes,
                     struct tensor_lists *lists)
{
    uint32_t room =
        (kind->has_scalars ? capacity->beside_scalars : capacity->tensors)[kind->depth - 1];
    uint32_t behind = (kind->depth + 1) * room * ADDRESS; /* addresses and lengths */
    uint32_t block_bytes = (uint32_t)capacity->blocks * (capacity->index_bytes + 4u);
    uint32_t blocks = behind;
    if (kind->is_fused)
        blocks += capacity->beside_scalars[kind->depth - 1] * ADDRESS;
    if (kind->has_scalars && bytes > behind + block_bytes)
        blocks += (bytes - behind - block_bytes) / room * room;
    *lists = (struct tensor_lists){
        .room = (uint16_t)room,
        .lists = (uint8_t)kind->depth,
        .written = written_by_functor(kind->functor, kind->depth),
        .more_read = kind->is_fused ? behind : 0,
        .blocks = blocks,
        .blocks_max = capacity->blocks,
        .index_bytes = (uint8_t)capacity->index_bytes,
    };
    /* What follows: a number, and what fills the struct up to its alignment. */
    return bytes >= blocks + block_bytes && bytes < blocks + block_bytes + 2 * ADDRESS &&
           blocks - behind <= room * 2 * ADDRESS; /* the largest number is a complex double */
}

static struct tensor_lists find_foreach(const char *metadata, uint32_t bytes)
{
    struct tensor_lists lists;
    struct list_kind kind = {
        .has_scalars = !strncmp(metadata, "TensorListScalarListMetadataI", 29),
        .is_fused = !strncmp(metadata, "FusedOptimizerTensorListMetadataI", 33),
    };
    const char *arguments = strstr(metadata, "MetadataI");
    kind.functor = arguments ? strstr(arguments, "EEE") : NULL;
    kind.depth = kind.functor ? read_depth(strstr(arguments, "Li")) : 0;
    if (kind.depth &&
        (kind.has_scalars || kind.is_fused || !strncmp(metadata, "TensorListMetadataI", 19)))
        for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++)
            if (has_size(&capacities[i], &kind, bytes, &lists))
                return lists;
    return (struct tensor_lists){0};
}

/* CatArrInputTensorMetadata: addresses, then numbers; a row of the grid for each tensor. */
static struct tensor_lists find_cat(const char *metadata, uint32_t bytes)
{
    unsigned room = 0;
    const char *sizes = strstr(metadata, "EEjLi");
    bool wide = !sizes;
    if (wide)
        sizes = strstr(metadata, "EElLi");
    unsigned dimensions;
    if (!sizes || sscanf(sizes + 3, "Li%uELi%uE", &dimensions, &room) != 2 || !room ||
        room > UINT16_MAX || bytes < room * (ADDRESS + 3 * (wide ? 8 : 4) + 1))
        return (struct tensor_lists){0};
    return (struct tensor_lists){.room = (uint16_t)room, .lists = 1};
}

struct tensor_lists tensor_lists_find(const char *name, uint32_t parameter, uint32_t bytes)
{
    static const char foreach[] = "25multi_tensor_apply_kernelI";
    const char *kernel, *metadata;
    if (strncmp(name, "_ZN2at6native", strlen("_ZN2at6native")))
        return (struct tensor_lists){0};
    if (parameter == 0 && (kernel = strstr(name, foreach)) &&
        (metadata = strpbrk(kernel + sizeof foreach - 1, "TF")))
        return find_foreach(metadata, bytes);
    if (parameter == 1 && (kernel = strstr(name, "CatArrayBatchedCopy")))
        return find_cat(kernel, bytes);
    return (struct tensor_lists){0};
}

uint32_t tensor_lists_count(const struct tensor_lists *lists, const char *value, uint32_t blocks,
                            uint32_t rows)
{
    uint32_t count = rows;
    for (uint32_t i = 0; lists->blocks && i < blocks && i < lists->blocks_max; i++) {
        uint32_t tensor = 0;
        memcpy(&tensor, value + lists->blocks + i * lists->index_bytes, lists->index_bytes);
        if (!i || tensor >= count)
            count = tensor + 1;
    }
    return count < lists->room ? count : lists->room;
}
