/* python_layout.h: where CPython keeps its frames: the offsets of the few fields that a walk needs.
 * Needs libc alone: the shim is built from it, and from all of lib/python, too.
 *
 * Up to 3.12 they are fixed by the minor version (from the headers of each; they never changed
 * within one). From 3.13 on the interpreter says them itself, in _Py_DebugOffsets at the beginning
 * of _PyRuntime. Only the usual 64-bit build with a GIL is known; debug and free-threaded builds
 * and versions to come are not, and the first read of a code object's type shows it. */
#ifndef DDPCHECK_PYTHON_LAYOUT_H
#define DDPCHECK_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* How the line of an instruction is written down. */
enum python_lines {
    LINES_LNOTAB,   /* to 3.9: pairs of increments of address and line */
    LINES_RANGES,   /* 3.10: pairs of a range's length and line increment (PEP 626) */
    LINES_LOCATIONS /* from 3.11: entries of variable length, with columns (PEP 657) */
};

enum {
    PYTHON_NONE = 0xffff, /* the version has no such field */
    PYTHON_FRAME_BYTES = 160,
    PYTHON_CODE_BYTES = 256, /* no frame_bytes, code_bytes is more */
    PYTHON_SAID_BYTES = 52 *
                        8 /* what _PyRuntime says of itself from 3.13 on, as far as it matters */
};

struct python_layout {
    uint16_t minor; /* 3.minor */
    enum python_lines lines;
    /* PyThreadState */
    uint16_t thread_next, thread_frame;
    uint16_t
        frame_pointer;  /* 3.11, 3.12: thread_frame points to a struct that has the frame here */
    uint16_t thread_id; /* pthread_t */
    uint16_t native_id; /* kernel thread id */
    uint16_t handled;   /* pointer to the exceptions that are handled: exc_info */
    /* A frame */
    uint16_t frame_bytes; /* as much of it as has to be read */
    uint16_t previous, code;
    uint16_t instruction; /* pointer into the code from 3.11, before an int: index of the last
                             instruction */
    uint16_t owner;       /* a byte */
    uint8_t owner_c;      /* from this owner on it is no Python function's frame */
    uint8_t index_scale;  /* bytes per index */
    /* _PyRuntime, and the interpreters in it: for readers outside the process */
    uint16_t interpreters, interpreter_next, interpreter_threads;
    /* A code object */
    uint16_t code_bytes; /* 0: not known */
    uint16_t file, name, table, first_line, instructions;
    /* A str: its header if it is ASCII, if it is not */
    uint16_t ascii_bytes, compact_bytes;
};

/* The layout of a Python, by its PY_VERSION_HEX; runtime: the first PYTHON_SAID_BYTES of its
 * _PyRuntime, or NULL. Returns false if it is not known. */
bool python_layout_find(struct python_layout *layout, uint32_t version, const void *runtime);

#endif
