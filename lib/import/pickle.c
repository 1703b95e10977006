/* pickle.c: a stack machine for the pickles that PyTorch's Flight Recorder writes (its own Pickler,
 * protocol 2, no classes) and for those that Python makes of them again (protocols 2 to 5).
 *
 * A pickle is a program. Of its opcodes those are taken that build numbers, texts, lists and
 * dictionaries; an opcode that names or calls anything is refused (Python documentation,
 * pickletools: the list of opcodes). Memory is bounded by the file's size: each opcode makes at
 * most one value, and a memo's index can't be larger than the file. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/import/value.h"

enum { MARKS_MAX = 512 };

struct machine {
    struct arena *arena;
    const unsigned char *at, *begin, *end;
    struct value *stack;
    size_t depth, capacity;
    struct value *memo;
    size_t memos, memo_capacity; /* memos: the index that MEMOIZE takes next */
    size_t mark[MARKS_MAX];
    uint32_t marks;
    const unsigned char *opcode; /* in hand */
    struct error *err;
};

static const struct refused {
    unsigned char opcode;
    const char *name;
} refused[] = {
    {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
    {'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
    {0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {'P', "PERSID"},
    {'Q', "BINPERSID"}, {0x82, "EXT1"},         {0x83, "EXT2"},
    {0x84, "EXT4"},     {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
};

static unsigned long long place(const struct machine *machine)
{
    return (unsigned long long)(machine->opcode - machine->begin);
}

static int damaged(const struct machine *machine, const char *why)
{
    error_set(machine->err, "it is damaged at byte %llu (opcode 0x%02x): %s", place(machine),
              *machine->opcode, why);
    return -1;
}

static int fail_pickle_memory(const struct machine *machine)
{
    error_set(machine->err, OUT_OF_MEMORY);
    return -1;
}

static int refuse_pickle(const struct machine *machine)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].opcode == *machine->opcode)
            return error_set(machine->err,
                             "byte %llu is the opcode %s, which can run code: no Flight Recorder "
                             "dump has it; nothing "
                             "was run",
                             place(machine), refused[i].name);
    return error_set(machine->err,
                     "byte %llu is 0x%02x, an opcode that no Flight Recorder dump has",
                     place(machine), *machine->opcode);
}

static int push_value(struct machine *machine, struct value value)
{
    if (!ARRAY_RESERVE(machine->stack, machine->capacity, machine->depth + 1))
        return fail_pickle_memory(machine);
    machine->stack[machine->depth++] = value;
    return 0;
}

static int push_integer(struct machine *machine, int64_t integer)
{
    return push_value(machine, (struct value){.kind = VALUE_INT, .integer = integer});
}

/* Little-endian. */
static int read_opcode_argument(struct machine *machine, int bytes, uint64_t *value)
{
    if (machine->end - machine->at < bytes)
        return damaged(machine, "the file was cut off");
    *value = 0;
    for (int i = 0; i < bytes; i++)
        *value |= (uint64_t)machine->at[i] << 8 * i;
    machine->at += bytes;
    return 0;
}

/* Reads a length of length_bytes bytes, then that many bytes. */
static int counted(struct machine *machine, int length_bytes, const char **bytes, uint64_t *count)
{
    if (read_opcode_argument(machine, length_bytes, count))
        return -1;
    if (*count > (uint64_t)(machine->end - machine->at) || *count > INT32_MAX)
        return damaged(machine, "a text is longer than the file");
    *bytes = (const char *)machine->at;
    machine->at += *count;
    return 0;
}

static int text(struct machine *machine, int length_bytes)
{
    const char *bytes;
    uint64_t count;
    struct value value;
    if (counted(machine, length_bytes, &bytes, &count))
        return -1;
    return value_text(machine->arena, bytes, count, &value) ? fail_pickle_memory(machine)
                                                            : push_value(machine, value);
}

/* LONG1, LONG4: two's complement, its length in length_bytes bytes. */
static int long_integer(struct machine *machine, int length_bytes)
{
    const char *bytes;
    uint64_t count, integer = 0;
    if (counted(machine, length_bytes, &bytes, &count))
        return -1;
    if (count > sizeof integer)
        return damaged(machine, "a number is too large");
    for (uint64_t i = 0; i < count; i++)
        integer |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    if (count && count < sizeof integer && bytes[count - 1] & 0x80)
        integer |= UINT64_MAX << 8 * count;
    return push_integer(machine, (int64_t)integer);
}

static int floating(struct machine *machine)
{
    uint64_t bits;
    double number;
    if (read_opcode_argument(machine, 8, &bits))
        return -1;
    bits = __builtin_bswap64(bits); /* the only big-endian argument */
    memcpy(&number, &bits, sizeof number);
    return push_value(machine, (struct value){.kind = VALUE_FLOAT, .number = number});
}

/* The innermost mark is the floor of what may be popped. */
static size_t floor_of(const struct machine *machine)
{
    return machine->marks ? machine->mark[machine->marks - 1] : 0;
}

static int set_mark(struct machine *machine)
{
    if (machine->marks == MARKS_MAX)
        return damaged(machine, "it is nested too deeply");
    machine->mark[machine->marks++] = machine->depth;
    return 0;
}

/* What stands there; nothing where nothing was ever pushed. */
static struct value *stack_at(const struct machine *machine, size_t depth)
{
    return machine->stack ? machine->stack + depth : NULL;
}

/* The values above the innermost mark, which goes. */
static int take_marked(struct machine *machine, struct value **items, size_t *count)
{
    if (!machine->marks)
        return damaged(machine, "there is no mark");
    size_t mark = machine->mark[--machine->marks];
    *items = stack_at(machine, mark);
    *count = machine->depth - mark;
    machine->depth = mark;
    return 0;
}

static int take_last(struct machine *machine, uint32_t count, struct value **items)
{
    if (machine->depth - floor_of(machine) < count)
        return damaged(machine, "there are too few values");
    machine->depth -= count;
    *items = stack_at(machine, machine->depth);
    return 0;
}

static int new_list(struct machine *machine, enum value_kind kind, const struct value *items,
                    size_t count)
{
    struct value value;
    if (value_list(machine->arena, kind, &value) ||
        value_append(machine->arena, value.list, items, (uint32_t)count))
        return fail_pickle_memory(machine);
    return push_value(machine, value);
}

static int new_from_mark(struct machine *machine, enum value_kind kind)
{
    struct value *items;
    size_t count;
    if (take_marked(machine, &items, &count))
        return -1;
    if (kind == VALUE_DICT && count % 2)
        return damaged(machine, "a key has no value");
    return new_list(machine, kind, items, count);
}

static int new_tuple(struct machine *machine, uint32_t count)
{
    struct value *items;
    return take_last(machine, count, &items) ? -1 : new_list(machine, VALUE_LIST, items, count);
}

/* Into the list or dictionary below. */
static int append_items(struct machine *machine, enum value_kind kind, const struct value *items,
                        size_t count)
{
    if (machine->depth <= floor_of(machine) || machine->stack[machine->depth - 1].kind != kind)
        return damaged(machine, kind == VALUE_DICT ? "there is no dictionary to add to"
                                                   : "there is no list to add to");
    if (kind == VALUE_DICT && count % 2)
        return damaged(machine, "a key has no value");
    return value_append(machine->arena, machine->stack[machine->depth - 1].list, items,
                        (uint32_t)count)
               ? fail_pickle_memory(machine)
               : 0;
}

static int add_marked(struct machine *machine, enum value_kind kind)
{
    struct value *items;
    size_t count;
    return take_marked(machine, &items, &count) ? -1 : append_items(machine, kind, items, count);
}

static int add_last(struct machine *machine, enum value_kind kind)
{
    struct value *items;
    uint32_t count = kind == VALUE_DICT ? 2 : 1;
    return take_last(machine, count, &items) ? -1 : append_items(machine, kind, items, count);
}

static int memoize(struct machine *machine, uint64_t index)
{
    if (machine->depth <= floor_of(machine))
        return damaged(machine, "there is nothing to remember");
    if (index > (uint64_t)(machine->end - machine->begin))
        return damaged(machine, "a memo's index is larger than the file");
    size_t before = machine->memo_capacity;
    if (!ARRAY_RESERVE(machine->memo, machine->memo_capacity, index + 1))
        return fail_pickle_memory(machine);
    for (size_t i = before; i < machine->memo_capacity; i++)
        machine->memo[i] = (struct value){.kind = VALUE_MARK}; /* nothing there */
    machine->memo[index] = machine->stack[machine->depth - 1];
    machine->memos++;
    return 0;
}

static int recall(struct machine *machine, uint64_t index)
{
    if (index >= machine->memo_capacity || machine->memo[index].kind == VALUE_MARK)
        return damaged(machine, "it names a memo that was never made");
    return push_value(machine, machine->memo[index]);
}

static int memo(struct machine *machine, int bytes, int (*act)(struct machine *, uint64_t))
{
    uint64_t index;
    return read_opcode_argument(machine, bytes, &index) ? -1 : act(machine, index);
}

static int integer(struct machine *machine, int bytes)
{
    uint64_t value;
    if (read_opcode_argument(machine, bytes, &value))
        return -1;
    return push_integer(machine, bytes == 4 ? (int32_t)(uint32_t)value : (int64_t)value);
}

static int skip_bytes(struct machine *machine, int bytes)
{
    uint64_t ignored;
    return read_opcode_argument(machine, bytes, &ignored);
}

static int drop_value(struct machine *machine)
{
    struct value *items;
    size_t count;
    if (machine->marks && machine->depth == floor_of(machine))
        return take_marked(machine, &items, &count); /* POP takes a mark as well */
    return take_last(machine, 1, &items);
}

static int duplicate(struct machine *machine)
{
    if (machine->depth <= floor_of(machine))
        return damaged(machine, "there is nothing to repeat");
    return push_value(machine, machine->stack[machine->depth - 1]);
}

static int drop_marked(struct machine *machine)
{
    struct value *items;
    size_t count;
    return take_marked(machine, &items, &count);
}

static int run_opcode(struct machine *machine)
{
    switch (*machine->opcode) {
    case 0x80:
        return skip_bytes(machine, 1); /* PROTO */
    case 0x95:
        return skip_bytes(machine, 8); /* FRAME */
    case '}':
        return new_list(machine, VALUE_DICT, NULL, 0); /* EMPTY_DICT */
    case ']':
    case ')':
        return new_list(machine, VALUE_LIST, NULL, 0); /* EMPTY_LIST, EMPTY_TUPLE */
    case '(':
        return set_mark(machine);
    case 'u':
        return add_marked(machine, VALUE_DICT); /* SETITEMS */
    case 's':
        return add_last(machine, VALUE_DICT); /* SETITEM */
    case 'e':
        return add_marked(machine, VALUE_LIST); /* APPENDS */
    case 'a':
        return add_last(machine, VALUE_LIST); /* APPEND */
    case 't':
    case 'l':
        return new_from_mark(machine, VALUE_LIST); /* TUPLE, LIST */
    case 'd':
        return new_from_mark(machine, VALUE_DICT); /* DICT */
    case 0x85:
    case 0x86:
    case 0x87:
        return new_tuple(machine, *machine->opcode - 0x84u); /* TUPLE1, 2, 3 */
    case 'X':
    case 'B':
    case 'T':
        return text(machine, 4); /* BINUNICODE, BINBYTES, BINSTRING */
    case 0x8c:
    case 'C':
    case 'U':
        return text(machine, 1); /* SHORT_BINUNICODE, _BINBYTES, _BINSTRING */
    case 0x8d:
    case 0x8e:
    case 0x96:
        return text(machine, 8); /* BINUNICODE8, BINBYTES8, BYTEARRAY8 */
    case 'q':
        return memo(machine, 1, memoize); /* BINPUT */
    case 'r':
        return memo(machine, 4, memoize); /* LONG_BINPUT */
    case 0x94:
        return memoize(machine, machine->memos); /* MEMOIZE */
    case 'h':
        return memo(machine, 1, recall); /* BINGET */
    case 'j':
        return memo(machine, 4, recall); /* LONG_BINGET */
    case 'K':
        return integer(machine, 1); /* BININT1 */
    case 'M':
        return integer(machine, 2); /* BININT2 */
    case 'J':
        return integer(machine, 4); /* BININT */
    case 0x8a:
        return long_integer(machine, 1); /* LONG1 */
    case 0x8b:
        return long_integer(machine, 4); /* LONG4 */
    case 'G':
        return floating(machine); /* BINFLOAT */
    case 'N':
        return push_value(machine, (struct value){.kind = VALUE_NONE});
    case 0x88:
        return push_value(machine, (struct value){.kind = VALUE_BOOL, .integer = 1}); /* NEWTRUE */
    case 0x89:
        return push_value(machine, (struct value){.kind = VALUE_BOOL}); /* NEWFALSE */
    case '0':
        return drop_value(machine);
    case '1':
        return drop_marked(machine);
    case '2':
        return duplicate(machine);
    default:
        return refuse_pickle(machine);
    }
}

static int run_pickle(struct machine *machine, struct value *value)
{
    while (machine->at < machine->end) {
        machine->opcode = machine->at++;
        if (*machine->opcode == '.') {
            if (machine->depth != 1 || machine->marks)
                return damaged(machine, "it ends in the middle of something");
            *value = machine->stack[0];
            return 0;
        }
        if (run_opcode(machine))
            return -1;
    }
    return error_set(machine->err, "it was cut off at byte %llu",
                     (unsigned long long)(machine->end - machine->begin));
}

int pickle_read(struct arena *arena, const char *bytes, size_t count, struct value *value,
                struct error *err)
{
    const unsigned char *begin = (const unsigned char *)bytes;
    struct machine machine = {.arena = arena,
                              .at = begin,
                              .begin = begin,
                              .end = begin + count,
                              .opcode = begin,
                              .err = err};
    int result = run_pickle(&machine, value);
    free(machine.stack);
    free(machine.memo);
    return result;
}
