/* walker.c: python_read.h for Python itself: check_walker.py compares what it says with what Python
 * knows. */
#include <stdio.h>
#include <string.h>

#include "lib/python/peek.h"
#include "lib/python/python_exception.h"
#include "lib/python/python_read.h"

#define EXPORT __attribute__((visibility("default")))

static struct python_memory memory;

enum { MESSAGE_BYTES = 120 };

EXPORT int walker_start(uint32_t version, const void *runtime, uint64_t code_type,
                        uint64_t str_type, uint64_t bytes_type);
EXPORT int walker_frames(uint64_t thread_state, int trusted, char *text, int bytes);
EXPORT int walker_line(uint64_t code, int instruction, int trusted);
EXPORT int walker_handled(uint64_t thread_state, char *text, int bytes);
EXPORT uint64_t walker_key(uint64_t code, int instruction);

EXPORT int walker_start(uint32_t version, const void *runtime, uint64_t code_type,
                        uint64_t str_type, uint64_t bytes_type)
{
    memory.code_type = code_type;
    memory.str_type = str_type;
    memory.bytes_type = bytes_type;
    return peek_start() && python_layout_find(&memory.layout, version, runtime);
}

/* "file\tline\tfunction\n" for each frame. Returns 1 if all was sound. */
EXPORT int walker_frames(uint64_t thread_state, int trusted, char *text, int bytes)
{
    struct python_frame frames[32];
    bool sound;
    int used = 0;
    text[0] = 0;
    uint32_t count = python_walk(&memory, trusted, thread_state, frames, 32, &sound);
    for (uint32_t i = 0; i < count; i++) {
        struct python_place place;
        if (!python_place(&memory, trusted, &frames[i], &place))
            return 0;
        used += snprintf(text + used, (size_t)(bytes - used), "%.*s\t%u\t%.*s\n",
                         (int)place.file_bytes, place.file, place.line, (int)place.function_bytes,
                         place.function);
    }
    return sound;
}

/* "type\tmessage\n", then "file\tline\tfunction\n" for each frame of the traceback of the exception
 * that the thread handles. Returns how many frames, -1 if it handles none. */
EXPORT int walker_handled(uint64_t thread_state, char *text, int bytes)
{
    struct python_frame frames[4];
    uint64_t exception = python_exception_handled(&memory, thread_state);
    if (!exception)
        return -1;
    uint32_t used = python_exception_type(exception, text, (uint32_t)bytes - 1);
    uint32_t count = python_exception_frames(&memory, exception, frames, 4);
    text[used++] = '\t';
    used += python_exception_message(&memory, exception, text + used, MESSAGE_BYTES);
    text[used++] = '\n';
    for (uint32_t i = 0; i < count; i++) {
        struct python_place place;
        if (!python_place(&memory, false, &frames[i], &place))
            return -1;
        used += (uint32_t)snprintf(text + used, (size_t)bytes - used, "%.*s\t%u\t%.*s\n",
                                   (int)place.file_bytes, place.file, place.line,
                                   (int)place.function_bytes, place.function);
    }
    return (int)count;
}

/* -1: no code object */
EXPORT int walker_line(uint64_t code, int instruction, int trusted)
{
    struct python_frame frame = {.code = code, .instruction = instruction};
    struct python_place place;
    return python_place(&memory, trusted, &frame, &place) ? (int)place.line : -1;
}

EXPORT uint64_t walker_key(uint64_t code, int instruction)
{
    struct python_frame frame = {.code = code, .instruction = instruction};
    return python_walk_key(&memory, &frame, 1);
}
