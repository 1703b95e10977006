/* python_read.h: reads the frames and code objects of a Python without calling it.
 *
 * No GIL, no reference, no exception, no allocation. Two ways to read memory: checked (peek.h),
 * where a wrong address is an error and not a crash; and trusted, plain loads, for a thread that
 * reads its own frames (only it changes them while it is in a call of ours) after checked reads
 * have shown that the layout is right. */
#ifndef DDPCHECK_PYTHON_READ_H
#define DDPCHECK_PYTHON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/python/python_layout.h"

struct python_memory {
    struct python_layout layout;
    uint64_t code_type, str_type,
        bytes_type; /* addresses of PyCode_Type, PyUnicode_Type, PyBytes_Type */
};

struct python_frame {
    uint64_t code;
    int32_t instruction; /* offset in bytes of the instruction that it is at */
};

struct python_place {
    char file[512], function[256]; /* UTF-8; of a longer file name the end */
    uint32_t file_bytes, function_bytes;
    uint32_t line; /* 0: not known */
};

bool python_read(bool trusted, uint64_t address, void *to, size_t bytes);

/* A str's text as UTF-8, the beginning or the end of it if it is longer than `max` bytes. Returns
 * its bytes, 0 if it is no compact str. */
enum python_part { PYTHON_BEGINNING, PYTHON_END };
uint32_t python_text(const struct python_memory *memory, bool trusted, uint64_t object,
                     enum python_part part, char *text, uint32_t max);

/* The frames of a PyThreadState, innermost first, at most `max`. *sound: the chain was followed to
 * its end (or to `max`) and everything on it was what it should be. */
uint32_t python_walk(const struct python_memory *memory, bool trusted, uint64_t thread_state,
                     struct python_frame *frames, uint32_t max, bool *sound);

/* A hash of the frames that differs where a code object was freed and another lies in its place.
 * Trusted reads. */
uint64_t python_walk_key(const struct python_memory *memory, const struct python_frame *frames,
                         uint32_t count);

/* The key of another thread's frames, with checked reads; 0 where one fails. */
uint64_t python_checked_key(const struct python_memory *memory, const struct python_frame *frames,
                            uint32_t count);

/* File, function and line. Returns false if the code object is not one. */
bool python_place(const struct python_memory *memory, bool trusted,
                  const struct python_frame *frame, struct python_place *place);

#endif
