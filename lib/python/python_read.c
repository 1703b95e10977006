/* python_read.c: frames and code objects, read from memory. See python_read.h. */
#include "lib/python/python_read.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/python/peek.h"
#include "lib/python/python_lines.h"

enum {
    OBJECT_TYPE = 8,
    STR_LENGTH = 16,
    STR_HASH = 24,
    STR_STATE = 32,
    BYTES_SIZE = 16,
    BYTES_DATA = 32,
    STATE_KIND_SHIFT = 2,
    STATE_KIND_MASK = 7,
    STATE_COMPACT = 0x20,
    STATE_ASCII = 0x40,
    CHAIN_MAX = 4096, /* frames that are passed over count as well */
    STR_MAX = 1 << 20
};

bool python_read(bool trusted, uint64_t address, void *to, size_t bytes)
{
    if (address < 4096 || address >> 56)
        return false;
    if (!trusted)
        return peek(address, to, bytes);
    memcpy(to, (const void *)(uintptr_t)address, bytes);
    return true;
}

static uint64_t word_at(const unsigned char *bytes, uint16_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

static int32_t int_at(const unsigned char *bytes, uint16_t offset)
{
    int32_t value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
}

static bool has_type(bool trusted, uint64_t object, uint64_t type)
{
    uint64_t found;
    return object % sizeof found == 0 &&
           python_read(trusted, object + OBJECT_TYPE, &found, sizeof found) && found == type;
}

/* The frame's code and place in it. Returns false if it is no Python function's frame. */
static bool read_python_frame(const struct python_memory *memory, const unsigned char *bytes,
                              struct python_frame *frame)
{
    const struct python_layout *layout = &memory->layout;
    if (layout->owner != PYTHON_NONE && bytes[layout->owner] >= layout->owner_c)
        return false;
    frame->code = word_at(bytes, layout->code) & ~7ull; /* 3.14 tags the reference */
    if (layout->instructions == PYTHON_NONE) {
        int64_t index = (int64_t)int_at(bytes, layout->instruction) * layout->index_scale;
        frame->instruction = index >= INT32_MIN && index <= INT32_MAX ? (int32_t)index : -1;
        return true;
    }
    int64_t offset =
        (int64_t)(word_at(bytes, layout->instruction) - (frame->code + layout->instructions));
    frame->instruction = offset >= 0 && offset < INT32_MAX ? (int32_t)offset : -1;
    return frame->instruction >= 0; /* a frame that is being made has not begun */
}

static bool first_frame(const struct python_layout *layout, bool trusted, uint64_t thread_state,
                        uint64_t *frame)
{
    if (!python_read(trusted, thread_state + layout->thread_frame, frame, sizeof *frame))
        return false;
    return layout->frame_pointer == PYTHON_NONE ||
           python_read(trusted, *frame + layout->frame_pointer, frame, sizeof *frame);
}

uint32_t python_walk(const struct python_memory *memory, bool trusted, uint64_t thread_state,
                     struct python_frame *frames, uint32_t max, bool *sound)
{
    unsigned char bytes[PYTHON_FRAME_BYTES];
    uint64_t frame;
    uint32_t count = 0;
    *sound = false;
    if (!first_frame(&memory->layout, trusted, thread_state, &frame))
        return 0;
    for (int passed = 0; frame && count < max; passed++) {
        if (passed == CHAIN_MAX || frame % sizeof frame ||
            !python_read(trusted, frame, bytes, memory->layout.frame_bytes))
            return count;
        if (read_python_frame(memory, bytes, &frames[count])) {
            if (!has_type(trusted, frames[count].code, memory->code_type))
                return count;
            count++;
        }
        frame = word_at(bytes, memory->layout.previous);
    }
    *sound = true;
    return count;
}

static uint64_t load_word(uint64_t address)
{
    uint64_t word;
    memcpy(&word, (const void *)(uintptr_t)address, sizeof word);
    return word;
}

/* Notebooks and exec() make code objects that come and go at one address: what the code says of
 * itself (and the contents behind it, since those may come and go as well) distinguishes them. */
uint64_t python_walk_key(const struct python_memory *memory, const struct python_frame *frames,
                         uint32_t count)
{
    const struct python_layout *layout = &memory->layout;
    uint64_t key = count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t code = frames[i].code, file = load_word(code + layout->file),
                 table = load_word(code + layout->table);
        key = hash_word(key, code ^ (uint64_t)frames[i].instruction << 48);
        key = hash_word(key, file ^ load_word(code + layout->name) << 16);
        key = hash_word(key, table ^ load_word(code + layout->first_line) << 24);
        uint64_t length = load_word(file + STR_LENGTH);
        key = hash_word(key, length ^ load_word(file + STR_HASH));
        if (length >= sizeof length)
            key = hash_word(key, load_word(file + layout->ascii_bytes + length - sizeof length));
        key = hash_word(key, load_word(table + BYTES_SIZE) ^ load_word(table + BYTES_DATA));
    }
    return key ? key : 1;
}

uint64_t python_checked_key(const struct python_memory *memory, const struct python_frame *frames,
                            uint32_t count)
{
    const struct python_layout *layout = &memory->layout;
    unsigned char code[PYTHON_CODE_BYTES];
    uint64_t key = ~(uint64_t)count;
    for (uint32_t i = 0; i < count; i++) {
        if (!python_read(false, frames[i].code, code, layout->code_bytes) ||
            word_at(code, OBJECT_TYPE) != memory->code_type)
            return 0;
        key = hash_word(key, frames[i].code ^ (uint64_t)frames[i].instruction << 48);
        key = hash_word(key, word_at(code, layout->file) ^ word_at(code, layout->name) << 16);
        key = hash_word(key, word_at(code, layout->table) ^
                                 (uint64_t)int_at(code, layout->first_line) << 24);
    }
    return key ? key : 1;
}

static uint32_t put_utf8(char *to, uint32_t point)
{
    if (point < 0x80)
        return (uint32_t)(to[0] = (char)point, 1);
    if (point < 0x800) {
        to[0] = (char)(0xc0 | point >> 6);
        to[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        to[0] = (char)(0xe0 | point >> 12);
        to[1] = (char)(0x80 | (point >> 6 & 0x3f));
        to[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | (point >> 18 & 7));
    to[1] = (char)(0x80 | (point >> 12 & 0x3f));
    to[2] = (char)(0x80 | (point >> 6 & 0x3f));
    to[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* The beginning or end of a str that is not ASCII, as UTF-8. Returns its bytes, 0 if it can't be
 * read. */
static uint32_t transcode(bool trusted, uint64_t data, uint64_t length, uint32_t kind,
                          enum python_part part, char *text, uint32_t max)
{
    enum { POINT_BYTES_MAX = 4, POINTS_MAX = 128 };
    unsigned char raw[POINTS_MAX * POINT_BYTES_MAX];
    uint64_t points = max / POINT_BYTES_MAX < POINTS_MAX ? max / POINT_BYTES_MAX : POINTS_MAX;
    points = length < points ? length : points;
    if (part == PYTHON_END)
        data += (length - points) * kind;
    if (!python_read(trusted, data, raw, points * kind))
        return 0;
    uint32_t bytes = 0;
    for (uint64_t i = 0; i < points; i++) {
        uint32_t point = 0;
        memcpy(&point, raw + i * kind, kind);
        bytes += put_utf8(text + bytes, point);
    }
    return bytes;
}

uint32_t python_text(const struct python_memory *memory, bool trusted, uint64_t object,
                     enum python_part part, char *text, uint32_t max)
{
    uint64_t length;
    uint32_t state;
    if (!has_type(trusted, object, memory->str_type) ||
        !python_read(trusted, object + STR_LENGTH, &length, sizeof length) ||
        !python_read(trusted, object + STR_STATE, &state, sizeof state))
        return 0;
    uint32_t kind = state >> STATE_KIND_SHIFT & STATE_KIND_MASK;
    if (!(state & STATE_COMPACT) || length == 0 || length > STR_MAX ||
        (kind != 1 && kind != 2 && kind != 4))
        return 0;
    if (!(state & STATE_ASCII))
        return transcode(trusted, object + memory->layout.compact_bytes, length, kind, part, text,
                         max);
    uint64_t bytes = length < max ? length : max;
    uint64_t data = object + memory->layout.ascii_bytes;
    if (part == PYTHON_END)
        data += length - bytes;
    return python_read(trusted, data, text, bytes) ? (uint32_t)bytes : 0;
}

bool python_place(const struct python_memory *memory, bool trusted,
                  const struct python_frame *frame, struct python_place *place)
{
    const struct python_layout *layout = &memory->layout;
    unsigned char code[PYTHON_CODE_BYTES];
    if (!python_read(trusted, frame->code, code, layout->code_bytes) ||
        word_at(code, OBJECT_TYPE) != memory->code_type)
        return false;
    place->file_bytes = python_text(memory, trusted, word_at(code, layout->file), PYTHON_END,
                                    place->file, sizeof place->file);
    place->function_bytes = python_text(memory, trusted, word_at(code, layout->name), PYTHON_END,
                                        place->function, sizeof place->function);
    place->line = 0;
    uint64_t table = word_at(code, layout->table), size = 0;
    if (has_type(trusted, table, memory->bytes_type) &&
        python_read(trusted, table + BYTES_SIZE, &size, sizeof size)) {
        struct python_table bytes = {
            .trusted = trusted, .next = table + BYTES_DATA, .end = table + BYTES_DATA + size};
        place->line = python_line(layout->lines, &bytes, int_at(code, layout->first_line),
                                  frame->instruction);
    }
    return place->file_bytes && place->function_bytes;
}
