/* python_lines.h: from an instruction of a code object to its line, by CPython's three tables
 * (Objects/lnotab_notes.txt, PEP 626, Objects/locations.md). */
#ifndef DDPCHECK_PYTHON_LINES_H
#define DDPCHECK_PYTHON_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/python/python_layout.h"

/* The table's bytes, read piece by piece. */
struct python_table {
    bool trusted;
    uint64_t next, end; /* addresses of what is not read yet */
    uint32_t at, count;
    unsigned char piece[128];
};

/* The line of the instruction at byte `instruction`, 0 if it has none or the table can't be read.
 */
uint32_t python_line(enum python_lines kind, struct python_table *table, int32_t first_line,
                     int32_t instruction);

#endif
