/* python_exception.c: exceptions and their tracebacks, read from memory. See python_exception.h. */
#include "lib/python/python_exception.h"

#include <string.h>

#include "lib/python/peek.h"

/* Offsets that are the same from 3.8 on, and those that 3.11 changed, where an item of the stack of
 * handled exceptions became one object and frames lost theirs. */
enum {
    ITEMS_MAX = 256, /* generators and coroutines have an item each */
    ENTRIES_MAX = 4096,
    OBJECT_TYPE = 8,
    TYPE_NAME = 24,
    TYPE_FLAGS = 168,
    TYPE_IS_EXCEPTION = 1 << 30, /* Py_TPFLAGS_BASE_EXC_SUBCLASS */
    EXCEPTION_ARGUMENTS = 24,    /* a tuple */
    ARGUMENTS_SEARCHED = 2,      /* those of an OSError begin with its number */
    TRACEBACK_NEXT = 16,
    TRACEBACK_FRAME = 24,
    TRACEBACK_INSTRUCTION = 32,
    FRAME_OBJECT_FRAME = 24 /* from 3.11 on */
};

static bool read_word(uint64_t address, uint64_t *word)
{
    return address % sizeof *word == 0 && python_read(false, address, word, sizeof *word);
}

static bool is_exception(uint64_t object)
{
    uint64_t type, flags;
    return object && read_word(object + OBJECT_TYPE, &type) &&
           read_word(type + TYPE_FLAGS, &flags) && flags & TYPE_IS_EXCEPTION;
}

static bool has_items(const struct python_memory *memory)
{
    return memory->layout.minor >= 11;
}

uint64_t python_exception_handled(const struct python_memory *memory, uint64_t thread_state)
{
    bool one_object = has_items(memory);
    uint64_t item, value_at = one_object ? 0 : 8;
    uint64_t previous_at = one_object ? 8 : 24;
    if (memory->layout.handled == PYTHON_NONE ||
        !read_word(thread_state + memory->layout.handled, &item))
        return 0;
    for (int i = 0; item && i < ITEMS_MAX; i++) {
        uint64_t exception;
        if (!read_word(item + value_at, &exception))
            return 0;
        if (is_exception(exception))
            return exception;
        if (!read_word(item + previous_at, &item))
            return 0;
    }
    return 0;
}

uint32_t python_exception_type(uint64_t exception, char *name, uint32_t max)
{
    uint64_t type, text;
    uint32_t bytes = 0;
    if (!is_exception(exception) || !read_word(exception + OBJECT_TYPE, &type) ||
        !read_word(type + TYPE_NAME, &text))
        return 0;
    while (bytes < max && python_read(false, text + bytes, name + bytes, 1) && name[bytes])
        bytes++;
    /* Types of C are named with their module. */
    const char *dot = memrchr(name, '.', bytes);
    if (dot) {
        bytes -= (uint32_t)(dot + 1 - name);
        memmove(name, dot + 1, bytes);
    }
    return bytes;
}

/* Of a text that may end with an empty line. Returns its bytes. */
static uint32_t keep_last_line(char *text, uint32_t bytes)
{
    while (bytes && (unsigned char)text[bytes - 1] < ' ')
        bytes--;
    const char *before = memrchr(text, '\n', bytes);
    if (!before)
        return bytes;
    bytes -= (uint32_t)(before + 1 - text);
    memmove(text, before + 1, bytes);
    return bytes;
}

uint32_t python_exception_message(const struct python_memory *memory, uint64_t exception,
                                  char *message, uint32_t max)
{
    static const char again[] = "Caught "; /* PyTorch, of a loader's worker: the end is its own */
    uint64_t tuple, item = 0, first = memory->layout.minor >= 14 ? 32 : 24, count = 0;
    uint32_t bytes = 0, skipped = 0, end = 0;
    if (!is_exception(exception) || !read_word(exception + EXCEPTION_ARGUMENTS, &tuple) ||
        !read_word(tuple + 16, &count))
        return 0;
    for (uint64_t i = 0; i < count && i < ARGUMENTS_SEARCHED && !bytes; i++)
        if (read_word(tuple + first + i * sizeof item, &item))
            bytes = python_text(memory, false, item, PYTHON_BEGINNING, message, max);
    while (skipped < bytes && (unsigned char)message[skipped] < ' ')
        skipped++; /* a message may begin with an empty line */
    bytes -= skipped;
    memmove(message, message + skipped, bytes);
    while (end < bytes && (unsigned char)message[end] >= ' ')
        end++;
    if (end == bytes || end < sizeof again || memcmp(message, again, strlen(again)) != 0)
        return end;
    bytes = python_text(memory, false, item, PYTHON_END, message, max);
    return keep_last_line(message, bytes);
}

static bool read_entry(const struct python_memory *memory, uint64_t entry,
                       struct python_frame *frame)
{
    uint64_t holder;
    if (!read_word(entry + TRACEBACK_FRAME, &holder) ||
        (has_items(memory) && !read_word(holder + FRAME_OBJECT_FRAME, &holder)) ||
        !read_word(holder + memory->layout.code, &frame->code))
        return false;
    frame->code &= ~7ull; /* 3.14 tags the reference */
    return python_read(false, entry + TRACEBACK_INSTRUCTION, &frame->instruction,
                       sizeof frame->instruction);
}

static uint64_t traceback_of(const struct python_memory *memory, uint64_t exception)
{
    uint64_t entry, offset = has_items(memory) ? 40 : 32;
    return read_word(exception + offset, &entry) ? entry : 0;
}

bool python_exception_catcher(const struct python_memory *memory, uint64_t exception,
                              struct python_frame *frame)
{
    uint64_t entry = traceback_of(memory, exception);
    return entry && read_entry(memory, entry, frame);
}

uint32_t python_exception_frames(const struct python_memory *memory, uint64_t exception,
                                 struct python_frame *frames, uint32_t max)
{
    uint64_t entry = traceback_of(memory, exception);
    uint32_t count = 0;
    for (int i = 0; entry && i < ENTRIES_MAX; i++) { /* the outermost comes first */
        struct python_frame frame;
        if (!read_entry(memory, entry, &frame))
            break;
        count = count < max ? count + 1 : max;
        memmove(frames + 1, frames, (count - 1) * sizeof *frames);
        frames[0] = frame;
        if (!read_word(entry + TRACEBACK_NEXT, &entry))
            break;
    }
    return count;
}
