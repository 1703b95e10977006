/* value.h: what a Flight Recorder dump holds, be it a pickle or JSON: numbers, texts, lists and
 * dictionaries.
 *
 * All of one file lies in one arena and goes with it. Texts point into the file's bytes where they
 * can. A list may hold itself (pickles can say so): look only as deep as the format goes. */
#ifndef DDPCHECK_VALUE_H
#define DDPCHECK_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum value_kind {
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_DICT,
    VALUE_MARK
};

struct text_value {
    const char *bytes;
    uint32_t count;
    int32_t meaning; /* the reader's; 0 at first */
};
struct list_value {
    struct value *item; /* VALUE_DICT: key, value, key, value, ... */
    uint32_t count, capacity;
    uint64_t meaning; /* the reader's; 0 at first */
};
struct value {
    enum value_kind kind;
    union {
        int64_t integer; /* and VALUE_BOOL; VALUE_MARK: place of the mark below */
        double number;
        struct text_value *text;
        struct list_value *list;
    };
};

struct arena {
    struct arena_block *blocks;
    size_t used, total; /* of the newest block; of all */
};

/* NULL when memory is short. 16-byte aligned, zeroed. */
void *arena_take(struct arena *arena, size_t bytes);
void arena_free(struct arena *arena);

/* Each returns 0, or -1 when memory is short. Bytes are not copied. */
int value_text(struct arena *arena, const char *bytes, size_t count, struct value *value);
int value_list(struct arena *arena, enum value_kind kind, struct value *value);
int value_append(struct arena *arena, struct list_value *list, const struct value *items,
                 uint32_t count);

/* A number, also where it is written as a text ("12"). False if it is none. */
bool value_integer(const struct value *value, int64_t *integer);
/* "abc" == value. */
bool value_is(const struct value *value, const char *text);

/* Reads a pickle of protocol 2 to 5 without running anything: an opcode that could run code, or
 * that no dump needs, is refused with its name and place. Returns 0, or -1 with err (without the
 * file's name). */
int pickle_read(struct arena *arena, const char *bytes, size_t count, struct value *value,
                struct error *err);
/* Reads JSON. Returns as pickle_read. */
int json_tree_read(struct arena *arena, const char *bytes, size_t count, struct value *value,
                   struct error *err);

#endif
