/* frame_rows.c: interprets the call frame information of one function. The format is that of DWARF
 * 4, section 6.4, as the Linux Standard Base changes it for .eh_frame. */
#include "interpose/stacks/frame_rows.h"

#include <string.h>

#include "interpose/stacks/frame_tables.h"
#include "lib/python/peek.h"

enum { ENTRY_MAX = 4096, STATES_MAX = 8 };

/* Bytes of a description that is read from front to back; past the end they are 0 and `bad` is set.
 */
struct bytes {
    const unsigned char *at, *end;
    bool bad;
};

struct description {
    unsigned char entry[ENTRY_MAX], common[ENTRY_MAX];
    struct bytes entry_code, common_code;
    uint64_t code_factor, return_register;
    int64_t data_factor;
    bool is_signal;
};

static uint64_t take_code(struct bytes *bytes, unsigned count)
{
    uint64_t value = 0;
    if (bytes->end - bytes->at < (long)count) {
        bytes->bad = true;
        return 0;
    }
    memcpy(&value, bytes->at, count);
    bytes->at += count;
    return value;
}

/* A number in groups of 7 bits (DWARF 5, 7.6, LEB128). */
static uint64_t take_groups(struct bytes *bytes, bool is_signed)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = take_code(bytes, 1);
        value |= shift < 64 ? (byte & 0x7f) << shift : 0;
        shift += 7;
    } while (byte & 0x80 && !bytes->bad);
    return is_signed && shift < 64 && byte & 0x40 ? value | ~UINT64_C(0) << shift : value;
}

static uint64_t take_unsigned_number(struct bytes *bytes)
{
    return take_groups(bytes, false);
}

static int64_t take_signed_number(struct bytes *bytes)
{
    return (int64_t)take_groups(bytes, true);
}

static void skip_code(struct bytes *bytes, uint64_t count)
{
    if (count > (uint64_t)(bytes->end - bytes->at))
        bytes->bad = true;
    else
        bytes->at += count;
}

/* How many bytes a pointer of an encoding (DW_EH_PE_*) takes; 0: not known. */
static unsigned pointer_bytes(unsigned encoding)
{
    switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
        return 8;
    case 0x02:
    case 0x0a:
        return 2;
    case 0x03:
    case 0x0b:
        return 4;
    default:
        return 0;
    }
}

/* Copies an entry whose length stands before it. */
static bool copy_entry(uint64_t address, unsigned char *copy, struct bytes *bytes)
{
    uint32_t length;
    if (!peek(address, &length, sizeof length) || length < sizeof length || length > ENTRY_MAX ||
        !peek(address + sizeof length, copy, length))
        return false;
    *bytes = (struct bytes){copy, copy + length, false};
    return true;
}

static bool read_common(struct description *description, uint64_t address, unsigned *encoding)
{
    struct bytes *bytes = &description->common_code;
    char augmentation[8] = "";
    if (!copy_entry(address, description->common, bytes) || take_code(bytes, 4) != 0)
        return false;
    uint64_t version = take_code(bytes, 1);
    for (unsigned i = 0; i < sizeof augmentation && (augmentation[i] = (char)take_code(bytes, 1));
         i++)
        if (i == sizeof augmentation - 1)
            return false;
    description->code_factor = take_unsigned_number(bytes);
    description->data_factor = take_signed_number(bytes);
    description->return_register = version == 1 ? take_code(bytes, 1) : take_unsigned_number(bytes);
    if (augmentation[0] != 'z')
        return false;
    uint64_t length = take_unsigned_number(bytes);
    if (length > (uint64_t)(bytes->end - bytes->at))
        return false;
    const unsigned char *end = bytes->at + length;
    for (const char *letter = augmentation + 1; *letter; letter++) {
        if (*letter == 'R')
            *encoding = (unsigned)take_code(bytes, 1);
        else if (*letter == 'L')
            take_code(bytes, 1);
        else if (*letter == 'P')
            skip_code(bytes, pointer_bytes((unsigned)take_code(bytes, 1)));
        else if (*letter == 'S')
            description->is_signal = true;
        else
            break; /* the rest says nothing about frames */
    }
    bytes->at = end;
    return !bytes->bad;
}

/* The description of the function around `at`; *function is where that begins. */
static bool read_description(struct description *description, uint64_t at, uint64_t *function)
{
    struct bytes *bytes = &description->entry_code;
    uint64_t entry = frame_tables_find(at, function);
    unsigned encoding = 0;
    if (!entry || !copy_entry(entry, description->entry, bytes))
        return false;
    uint64_t back = take_code(bytes, 4);
    description->is_signal = false;
    if (!read_common(description, entry + 4 - back, &encoding) || !pointer_bytes(encoding) ||
        description->return_register != REGISTER_RETURN)
        return false;
    skip_code(bytes, pointer_bytes(encoding)); /* where the function begins */
    uint64_t length = take_code(bytes, pointer_bytes(encoding));
    skip_code(bytes, take_unsigned_number(bytes));
    return !bytes->bad && at - *function < length;
}

static void set_rule(struct frame_row *row, uint64_t number, enum rule rule, int64_t offset)
{
    if (number >= REGISTERS)
        return;
    row->rule[number] = rule;
    row->offset[number] = offset;
}

/* An expression for the frame's address: of those that compilers write for functions which align
 * their stack, register + offset, or what lies there (DWARF 4, 2.5.1: DW_OP_breg, DW_OP_deref). */
static void read_frame_expression(struct bytes *code, struct frame_row *row)
{
    enum { REGISTER_FIRST = 0x70, REGISTER_LAST = 0x8f, DEREFERENCE = 0x06 };
    uint64_t length = take_unsigned_number(code);
    struct bytes expression = {code->at, code->at, false};
    skip_code(code, length);
    expression.end = code->at;
    uint64_t operation = take_code(&expression, 1);
    row->frame_register = operation - REGISTER_FIRST;
    row->frame_offset = take_signed_number(&expression);
    row->is_frame_read = expression.at < expression.end && take_code(&expression, 1) == DEREFERENCE;
    row->has_frame = operation >= REGISTER_FIRST && operation <= REGISTER_LAST &&
                     expression.at == expression.end && !expression.bad;
}

/* The instructions that stand alone (no value in the low bits of their first byte). */
static bool step_extended(const struct description *description, struct bytes *code,
                          struct frame_row *row, unsigned what, uint64_t *location,
                          const struct frame_row *initial)
{
    const int64_t factor = description->data_factor;
    uint64_t number;
    switch (what) {
    case 0x00: /* nop */
        return true;
    case 0x02:
    case 0x03:
    case 0x04: /* advance_loc1, 2, 4 */
        *location += take_code(code, 1u << (what - 2)) * description->code_factor;
        return true;
    case 0x05:
    case 0x11: /* offset_extended, _sf */
        number = take_unsigned_number(code);
        set_rule(row, number, RULE_SAVED,
                 (what == 0x05 ? (int64_t)take_unsigned_number(code) : take_signed_number(code)) *
                     factor);
        return true;
    case 0x06: /* restore_extended */
        number = take_unsigned_number(code);
        if (number < REGISTERS)
            set_rule(row, number, initial->rule[number], initial->offset[number]);
        return true;
    case 0x07:
    case 0x08: /* undefined, same_value */
        set_rule(row, take_unsigned_number(code), what == 0x07 ? RULE_UNKNOWN : RULE_SAME, 0);
        return true;
    case 0x09: /* register */
        set_rule(row, take_unsigned_number(code), RULE_UNKNOWN, 0);
        take_unsigned_number(code);
        return true;
    case 0x0c:
    case 0x12: /* def_cfa, _sf */
        row->has_frame = true;
        row->is_frame_read = false;
        row->frame_register = take_unsigned_number(code);
        row->frame_offset = what == 0x0c ? (int64_t)take_unsigned_number(code)
                                         : take_signed_number(code) * factor;
        return true;
    case 0x0d: /* def_cfa_register */
        row->frame_register = take_unsigned_number(code);
        return true;
    case 0x0e:
    case 0x13: /* def_cfa_offset, _sf */
        row->frame_offset = what == 0x0e ? (int64_t)take_unsigned_number(code)
                                         : take_signed_number(code) * factor;
        return true;
    case 0x0f: /* def_cfa_expression */
        read_frame_expression(code, row);
        return true;
    case 0x10:
    case 0x16: /* expression, val_expression */
        set_rule(row, take_unsigned_number(code), RULE_UNKNOWN, 0);
        skip_code(code, take_unsigned_number(code));
        return true;
    case 0x14:
    case 0x15: /* val_offset, _sf */
        number = take_unsigned_number(code);
        set_rule(row, number, RULE_VALUE,
                 (what == 0x14 ? (int64_t)take_unsigned_number(code) : take_signed_number(code)) *
                     factor);
        return true;
    case 0x2e: /* GNU_args_size */
        take_unsigned_number(code);
        return true;
    default:
        return false;
    }
}

/* Static, because the stack of a signal handler may be small. */
static struct {
    struct description description;
    struct frame_row row, initial, state[STATES_MAX];
} reading;

/* Executes `code` up to the row that holds at `target`. */
static bool execute_frame_code(struct bytes *code, uint64_t location, uint64_t target)
{
    struct frame_row *row = &reading.row;
    unsigned states = 0;
    while (code->at < code->end && location <= target && !code->bad) {
        unsigned byte = (unsigned)take_code(code, 1), low_bits = byte & 0x3f;
        if (byte >> 6 == 1) { /* advance_loc */
            location += low_bits * reading.description.code_factor;
        } else if (byte >> 6 == 2) { /* offset */
            set_rule(row, low_bits, RULE_SAVED,
                     (int64_t)take_unsigned_number(code) * reading.description.data_factor);
        } else if (byte >> 6 == 3) { /* restore */
            if (low_bits < REGISTERS)
                set_rule(row, low_bits, reading.initial.rule[low_bits],
                         reading.initial.offset[low_bits]);
        } else if (byte == 0x0a) { /* remember_state */
            if (states == STATES_MAX)
                return false;
            reading.state[states++] = *row;
        } else if (byte == 0x0b) { /* restore_state */
            if (states == 0)
                return false;
            *row = reading.state[--states];
        } else if (!step_extended(&reading.description, code, row, byte, &location,
                                  &reading.initial)) {
            return false;
        }
    }
    return !code->bad;
}

bool frame_rows_find(uint64_t at, struct frame_row *row)
{
    uint64_t function;
    if (!read_description(&reading.description, at, &function))
        return false;
    reading.row = (struct frame_row){.is_signal = reading.description.is_signal};
    bool is_known = reading.row.is_signal ||
                    execute_frame_code(&reading.description.common_code, 0, 0);
    reading.initial = reading.row;
    if (is_known && !reading.row.is_signal)
        is_known = execute_frame_code(&reading.description.entry_code, function, at);
    *row = reading.row;
    return is_known;
}
