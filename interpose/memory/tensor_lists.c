/* tensor_lists.c: the layouts of PyTorch's parameters that list tensors (PyTorch 2.10 source,
 * aten/src/ATen/native/cuda): MultiTensorApply.cuh for torch._foreach_* and the optimizers,
 * Shape.cu for torch.cat. A parameter of another size than these give is of another release, and
 * unknown. */
#include "interpose/memory/tensor_lists.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    ADDRESS = sizeof(uint64_t),
    DEPTHS = 5,
    BLOCKS = 320,             /* of one launch, at most */
    BLOCK_BYTES = BLOCKS * 5, /* a block's tensor, and its part of it */
    ALL_LISTS = (1 << DEPTHS) - 1,
    GRADIENTS = 1 << 1 /* of a fused optimizer, whose first list are the parameters */
};

static const uint16_t rooms[DEPTHS] = {110, 64, 48, 36, 30};
static const uint16_t rooms_beside_scalars[DEPTHS] = {96, 64, 48, 36, 30};

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

/* TensorListMetadata, and the forms of it for lists of numbers and for fused optimizers. */
static struct tensor_lists find_foreach(const char *metadata, uint32_t bytes)
{
    const struct tensor_lists none = {0};
    bool scalars = !strncmp(metadata, "TensorListScalarListMetadataI", 29);
    bool fused = !strncmp(metadata, "FusedOptimizerTensorListMetadataI", 33);
    const char *arguments = strstr(metadata, "MetadataI");
    const char *end = arguments ? strstr(arguments, "EEE") : NULL;
    unsigned depth = end ? read_depth(strstr(arguments, "Li")) : 0;
    if (!depth || (!scalars && !fused && strncmp(metadata, "TensorListMetadataI", 19)))
        return none;
    uint32_t room = scalars ? rooms_beside_scalars[depth - 1] : rooms[depth - 1];
    uint32_t lengths = depth * room * ADDRESS, behind = lengths + room * ADDRESS;
    uint32_t blocks = behind;
    if (fused)
        blocks += rooms_beside_scalars[depth - 1] * ADDRESS;
    if (scalars && bytes > behind + BLOCK_BYTES)
        blocks += (bytes - behind - BLOCK_BYTES) / room * room;
    /* What follows: a number, and what fills the struct up to its alignment. */
    if (bytes < blocks + BLOCK_BYTES || bytes >= blocks + BLOCK_BYTES + 2 * ADDRESS)
        return none;
    return (struct tensor_lists){
        .room = (uint16_t)room,
        .lists = (uint8_t)depth,
        .written = written_by_functor(end, depth),
        .more_read = fused ? behind : 0,
        .blocks = blocks,
    };
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
    for (uint32_t i = 0; lists->blocks && i < blocks && i < BLOCKS; i++) {
        uint32_t tensor = (uint8_t)value[lists->blocks + i];
        if (!i || tensor >= count)
            count = tensor + 1;
    }
    return count < lists->room ? count : lists->room;
}
