/* python_lines.c: CPython's line tables. See python_lines.h. */
#include "lib/python/python_lines.h"

#include "lib/python/python_read.h"

enum { TABLE_MAX = 1 << 22 };

/* The next byte, or -1 at the end. */
static int read_varint(struct python_table *table)
{
    if (table->at == table->count) {
        uint64_t left = table->end - table->next;
        if (table->next >= table->end || left > TABLE_MAX)
            return -1;
        table->count = (uint32_t)(left < sizeof table->piece ? left : sizeof table->piece);
        table->at = 0;
        if (!python_read(table->trusted, table->next, table->piece, table->count)) {
            table->at = table->count = 0;
            table->next = table->end;
            return -1;
        }
        table->next += table->count;
    }
    return table->piece[table->at++];
}

static uint32_t clamp_line(int64_t line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* To 3.9: the line is the sum of the increments at addresses up to the instruction's. */
static uint32_t find_lnotab(struct python_table *table, int64_t line, int32_t instruction)
{
    int64_t address = 0;
    int bytes, lines;
    while ((bytes = read_varint(table)) >= 0 && (lines = read_varint(table)) >= 0) {
        address += bytes;
        if (address > instruction)
            break;
        line += (int8_t)lines;
    }
    return clamp_line(line);
}

/* 3.10: ranges of instructions, each with the difference of its line to the previous; -128: it
 * has none. */
static uint32_t find_ranges(struct python_table *table, int64_t line, int32_t instruction)
{
    enum { NO_LINE = -128 };
    int64_t end = 0;
    int bytes, lines;
    while ((bytes = read_varint(table)) >= 0 && (lines = read_varint(table)) >= 0) {
        bool has_line = (int8_t)lines != NO_LINE;
        if (has_line)
            line += (int8_t)lines;
        end += bytes;
        if (instruction < end)
            return has_line ? clamp_line(line) : 0;
    }
    return 0;
}

/* Six bits a byte, lowest first; 0x40: another follows; the lowest bit of the whole is the sign. */
static int64_t read_signed_varint(struct python_table *table)
{
    uint64_t value = 0;
    int byte, shift = 0;
    do {
        byte = read_varint(table);
        if (byte < 0)
            return 0;
        value |= (uint64_t)(byte & 0x3f) << shift;
        shift += 6;
    } while (byte & 0x40 && shift < 36);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* From 3.11: an entry begins with a byte that has its highest bit set: code and length in
 * instructions of two bytes. Codes 10 to 12 move the line by 0 to 2, 13 and 14 by a number that
 * follows, 15 has no line. */
static uint32_t find_locations(struct python_table *table, int64_t line, int32_t instruction)
{
    enum {
        BEGINS = 0x80,
        CODE_ONE_LINE = 10,
        CODE_NO_COLUMNS = 13,
        CODE_LONG = 14,
        CODE_NONE = 15
    };
    int64_t end = 0;
    for (int byte = read_varint(table); byte >= 0;) {
        int code = byte >> 3 & 15;
        end += 2 * ((byte & 7) + 1);
        if (code == CODE_LONG || code == CODE_NO_COLUMNS)
            line += read_signed_varint(table);
        else if (code >= CODE_ONE_LINE && code != CODE_NONE)
            line += code - CODE_ONE_LINE;
        if (instruction < end)
            return code == CODE_NONE ? 0 : clamp_line(line);
        do
            byte = read_varint(table);
        while (byte >= 0 && !(byte & BEGINS));
    }
    return 0;
}

uint32_t python_line(enum python_lines kind, struct python_table *table, int32_t first_line,
                     int32_t instruction)
{
    switch (kind) {
    case LINES_LNOTAB:
        return find_lnotab(table, first_line, instruction);
    case LINES_RANGES:
        return find_ranges(table, first_line, instruction);
    default:
        return find_locations(table, first_line, instruction);
    }
}
