/* python_layout.c: the table of layouts. See python_layout.h. */
#include "lib/python/python_layout.h"

#include <string.h>

/* offsetof() with the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1 on x86-64. */
static const struct python_layout fixed[] = {
    {.minor = 8,
     .lines = LINES_LNOTAB,
     .thread_next = 8,
     .thread_frame = 24,
     .frame_pointer = PYTHON_NONE,
     .thread_id = 176,
     .native_id = PYTHON_NONE,
     .handled = 144,
     .frame_bytes = 112,
     .previous = 24,
     .code = 32,
     .instruction = 104,
     .owner = PYTHON_NONE,
     .index_scale = 1,
     .code_bytes = 128,
     .file = 104,
     .name = 112,
     .table = 120,
     .first_line = 40,
     .instructions = PYTHON_NONE,
     .ascii_bytes = 48,
     .compact_bytes = 72,
     .interpreters = 32,
     .interpreter_next = 0,
     .interpreter_threads = 8},
    {.minor = 9,
     .lines = LINES_LNOTAB,
     .thread_next = 8,
     .thread_frame = 24,
     .frame_pointer = PYTHON_NONE,
     .thread_id = 176,
     .native_id = PYTHON_NONE,
     .handled = 144,
     .frame_bytes = 112,
     .previous = 24,
     .code = 32,
     .instruction = 104,
     .owner = PYTHON_NONE,
     .index_scale = 1,
     .code_bytes = 128,
     .file = 104,
     .name = 112,
     .table = 120,
     .first_line = 40,
     .instructions = PYTHON_NONE,
     .ascii_bytes = 48,
     .compact_bytes = 72,
     .interpreters = 32,
     .interpreter_next = 0,
     .interpreter_threads = 8},
    {.minor = 10,
     .lines = LINES_RANGES,
     .thread_next = 8,
     .thread_frame = 24,
     .frame_pointer = PYTHON_NONE,
     .thread_id = 176,
     .native_id = PYTHON_NONE,
     .handled = 144,
     .frame_bytes = 112,
     .previous = 24,
     .code = 32,
     .instruction = 96,
     .owner = PYTHON_NONE,
     .index_scale = 2,
     .code_bytes = 128,
     .file = 104,
     .name = 112,
     .table = 120,
     .first_line = 40,
     .instructions = PYTHON_NONE,
     .ascii_bytes = 48,
     .compact_bytes = 72,
     .interpreters = 32,
     .interpreter_next = 0,
     .interpreter_threads = 8},
    {.minor = 11,
     .lines = LINES_LOCATIONS,
     .thread_next = 8,
     .thread_frame = 56,
     .frame_pointer = 8,
     .thread_id = 152,
     .native_id = 160,
     .handled = 120,
     .frame_bytes = 72,
     .previous = 48,
     .code = 32,
     .instruction = 56,
     .owner = 69,
     .owner_c = 3,
     .code_bytes = 144,
     .file = 112,
     .name = 128,
     .table = 136,
     .first_line = 72,
     .instructions = 184,
     .ascii_bytes = 48,
     .compact_bytes = 72,
     .interpreters = 40,
     .interpreter_next = 0,
     .interpreter_threads = 16},
    {.minor = 12,
     .lines = LINES_LOCATIONS,
     .thread_next = 8,
     .thread_frame = 56,
     .frame_pointer = 0,
     .thread_id = 136,
     .native_id = 144,
     .handled = 104,
     .frame_bytes = 72,
     .previous = 8,
     .code = 0,
     .instruction = 56,
     .owner = 70,
     .owner_c = 3,
     .code_bytes = 144,
     .file = 112,
     .name = 128,
     .table = 136,
     .first_line = 68,
     .instructions = 192,
     .ascii_bytes = 40,
     .compact_bytes = 56,
     .interpreters = 40,
     .interpreter_next = 0,
     .interpreter_threads = 72},
};

/* Which word of _Py_DebugOffsets is what (Include/internal/pycore_debug_offsets.h; in 3.13
 * pycore_runtime.h). Later versions put words between these; the size and type offset of PyObject,
 * whose values are known, show that the words were counted right. */
static const struct said_words {
    uint16_t minor;
    uint16_t handled; /* which it does not say: from the headers */
    uint8_t interpreters, interpreter_next, interpreter_threads;
    uint8_t thread_next, thread_frame, thread_id, native_id, previous, code, instruction, owner;
    uint8_t file, qualified_name, table, first_line, instructions, object_bytes, object_type;
} said_words[] = {
    {13, 120, 5, 8, 9, 21, 23, 24, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43, 44, 45},
    {14, PYTHON_NONE, 5, 8, 9, 24, 26, 27, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48, 50, 51},
};

enum {
    WORDS = PYTHON_SAID_BYTES / 8,
    COOKIE_BYTES = 8,
    FIELD_LAST = 1024,
    STATE_LAST = UINT16_MAX,
    OBJECT_BYTES = 16,
    OBJECT_TYPE = 8
};

struct layout_text {
    char cookie[COOKIE_BYTES];
    uint64_t version, free_threaded;
    uint64_t word[WORDS - 3];
};

static uint16_t field_within(const uint64_t *words, uint8_t index, uint64_t last, bool *sound)
{
    *sound &= words[index] < last;
    return (uint16_t)words[index];
}

static uint16_t field(const uint64_t *words, uint8_t index, bool *sound)
{
    return field_within(words, index, FIELD_LAST, sound);
}

/* How much has to be read for words at these offsets. */
static uint16_t bytes_of_words(const uint16_t *offsets, int count)
{
    uint16_t last = 0;
    for (int i = 0; i < count; i++)
        last = offsets[i] > last ? offsets[i] : last;
    return (uint16_t)(last + sizeof(uint64_t));
}

/* What the interpreter says of itself. */
static bool read_said(struct python_layout *layout, const struct said_words *at,
                      const void *runtime, uint32_t version)
{
    uint64_t words[WORDS];
    struct layout_text said;
    memcpy(&said, runtime, sizeof said);
    memcpy(words, runtime, sizeof words);
    if (memcmp(said.cookie, "xdebugpy", COOKIE_BYTES) || said.version != version ||
        said.free_threaded || words[at->object_bytes] != OBJECT_BYTES ||
        words[at->object_type] != OBJECT_TYPE)
        return false;
    bool sound = true;
    *layout = (struct python_layout){
        .minor = at->minor,
        .handled = at->handled,
        .lines = LINES_LOCATIONS,
        .thread_next = field(words, at->thread_next, &sound),
        .thread_frame = field(words, at->thread_frame, &sound),
        .frame_pointer = PYTHON_NONE,
        .thread_id = field(words, at->thread_id, &sound),
        .native_id = field(words, at->native_id, &sound),
        .previous = field(words, at->previous, &sound),
        .code = field(words, at->code, &sound),
        .instruction = field(words, at->instruction, &sound),
        .interpreters = field_within(words, at->interpreters, STATE_LAST, &sound),
        .interpreter_next = field_within(words, at->interpreter_next, STATE_LAST, &sound),
        .interpreter_threads = field_within(words, at->interpreter_threads, STATE_LAST, &sound),
        .owner = field(words, at->owner, &sound),
        .owner_c = 3,
        .file = field(words, at->file, &sound),
        .name = field(words, at->qualified_name, &sound),
        .table = field(words, at->table, &sound),
        .first_line = field(words, at->first_line, &sound),
        .instructions = field(words, at->instructions, &sound),
        .ascii_bytes = 40,
        .compact_bytes = 56,
    };
    const uint16_t of_frame[] = {layout->previous, layout->code, layout->instruction,
                                 layout->owner};
    const uint16_t of_code[] = {OBJECT_TYPE, layout->file, layout->name, layout->table,
                                layout->first_line};
    layout->frame_bytes = bytes_of_words(of_frame, sizeof of_frame / sizeof *of_frame);
    layout->code_bytes = bytes_of_words(of_code, sizeof of_code / sizeof *of_code);
    return sound && layout->frame_bytes <= PYTHON_FRAME_BYTES &&
           layout->code_bytes <= PYTHON_CODE_BYTES;
}

bool python_layout_find(struct python_layout *layout, uint32_t version, const void *runtime)
{
    if (version >> 24 != 3)
        return false;
    uint32_t minor = version >> 16 & 0xff;
    for (unsigned i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (fixed[i].minor == minor) {
            *layout = fixed[i];
            return true;
        }
    for (unsigned i = 0; runtime && i < sizeof said_words / sizeof said_words[0]; i++)
        if (said_words[i].minor == minor)
            return read_said(layout, &said_words[i], runtime, version);
    return false;
}
