/* image_unpack.c: unpacks the parts of a fat binary: LZ4 blocks ("LZ4 Block Format Description"),
 * as fatbinary of CUDA 12 writes them, and zstd, as that of CUDA 13 does. */
#include <dlfcn.h>
#include <pthread.h>
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

/* From libzstd, where the machine has it: to emulate does not need it, and the libraries here
 * depend on libc only. */
static pthread_once_t zstd_looked_for = PTHREAD_ONCE_INIT;
static size_t (*zstd_decompress)(void *to, size_t room, const void *packed, size_t bytes);

static void look_for_zstd(void)
{
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library)
        *(void **)&zstd_decompress = dlsym(library, "ZSTD_decompress");
}

bool image_unpack_zstd(const void *packed, size_t bytes, void *to, size_t room)
{
    pthread_once(&zstd_looked_for, look_for_zstd);
    return zstd_decompress && zstd_decompress(to, room, packed, bytes) == room;
}
