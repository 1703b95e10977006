/* image_lz4.c: unpacks LZ4 blocks ("LZ4 Block Format Description"), as fatbinary of CUDA 12 packs
 * the parts of a fat binary. */
#include <string.h>

#include "emu/core/image_parts.h"

enum { EXTENDED = 15, MATCH_MIN = 4, OFFSET_BYTES = 2 };

struct lz4_block {
    const uint8_t *at, *end;
    uint8_t *to;
    size_t written, room;
};

/* A length of 4 bits, which further bytes extend. False if the block ends in it. */
static bool read_lz4_length(struct lz4_block *block, size_t *length)
{
    uint8_t more = UINT8_MAX;

    for (bool extended = *length == EXTENDED; extended; extended = more == UINT8_MAX) {
        if (block->at == block->end)
            return false;
        more = *block->at++;
        *length += more;
    }
    return true;
}

static bool copy_literals(struct lz4_block *block, size_t length)
{
    if (length > (size_t)(block->end - block->at) || length > block->room - block->written)
        return false;
    memcpy(block->to + block->written, block->at, length);
    block->at += length;
    block->written += length;
    return true;
}

/* What was written `offset` bytes ago; the two may overlap. */
static bool copy_match(struct lz4_block *block, size_t offset, size_t length)
{
    if (!offset || offset > block->written || length > block->room - block->written)
        return false;
    for (; length; length--, block->written++)
        block->to[block->written] = block->to[block->written - offset];
    return true;
}

bool image_unpack_lz4(const void *packed, size_t bytes, void *to, size_t room)
{
    struct lz4_block block = {packed, (const uint8_t *)packed + bytes, to, 0, room};

    while (block.at < block.end) {
        uint8_t token = *block.at++;
        size_t literals = token >> 4, match = token & EXTENDED, offset;

        if (!read_lz4_length(&block, &literals) || !copy_literals(&block, literals))
            return false;
        if (block.at == block.end)
            break; /* the last sequence has no match */
        if (block.end - block.at < OFFSET_BYTES)
            return false;
        offset = block.at[0] | (size_t)block.at[1] << 8;
        block.at += OFFSET_BYTES;
        if (!read_lz4_length(&block, &match) || !copy_match(&block, offset, match + MATCH_MIN))
            return false;
    }
    return block.written == room;
}
