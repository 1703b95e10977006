/* value.c: keeps the values of a Flight Recorder dump: numbers, texts, lists and dictionaries. */
#include "lib/import/value.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20, DEPTH_MAX = 64 };

struct arena_block {
    struct arena_block *next;
    size_t bytes;
    _Alignas(16) char at[];
};

void *arena_take(struct arena *arena, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct arena_block *block = arena->blocks;
    if (!block || block->bytes - arena->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        if (!(block = malloc(sizeof *block + size)))
            return NULL;
        *block = (struct arena_block){arena->blocks, size};
        arena->blocks = block;
        arena->used = 0;
        arena->total += size;
    }
    void *taken = block->at + arena->used;
    arena->used += bytes;
    return memset(taken, 0, bytes);
}

/* Keeps the memory of one block for the next file. */
static void arena_reset(struct arena *arena)
{
    while (arena->blocks && (arena->blocks->next || arena->blocks->bytes > BLOCK_BYTES)) {
        struct arena_block *next = arena->blocks->next;
        arena->total -= arena->blocks->bytes;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena->used = 0;
}

void arena_free(struct arena *arena)
{
    arena_reset(arena);
    free(arena->blocks);
    *arena = (struct arena){0};
}

int value_text(struct arena *arena, const char *bytes, size_t count, struct value *value)
{
    struct text_value *text = arena_take(arena, sizeof *text);
    if (!text)
        return -1;
    text->bytes = bytes;
    text->count = (uint32_t)count;
    *value = (struct value){.kind = VALUE_TEXT, .text = text};
    return 0;
}

int value_list(struct arena *arena, enum value_kind kind, struct value *value)
{
    struct list_value *list = arena_take(arena, sizeof *list);
    if (!list)
        return -1;
    *value = (struct value){.kind = kind, .list = list};
    return 0;
}

int value_append(struct arena *arena, struct list_value *list, const struct value *items,
                 uint32_t count)
{
    if (count > list->capacity - list->count) {
        uint64_t wanted = (uint64_t)list->count + count;
        uint64_t capacity = list->count ? 2 * wanted : wanted;
        struct value *grown = capacity > UINT32_MAX ? NULL
                                                    : arena_take(arena, capacity * sizeof *grown);
        if (!grown)
            return -1;
        if (list->count)
            memcpy(grown, list->item, list->count * sizeof *grown);
        list->item = grown;
        list->capacity = (uint32_t)capacity;
    }
    if (count)
        memcpy(list->item + list->count, items, count * sizeof *items);
    list->count += count;
    return 0;
}

bool value_integer(const struct value *value, int64_t *integer)
{
    char digits[24], *end;
    switch (value->kind) {
    case VALUE_INT:
    case VALUE_BOOL:
        *integer = value->integer;
        return true;
    case VALUE_FLOAT:
        if (!(value->number > -9e18 && value->number < 9e18))
            return false;
        *integer = (int64_t)value->number;
        return true;
    case VALUE_TEXT:
        if (!value->text->count || value->text->count >= sizeof digits)
            return false;
        memcpy(digits, value->text->bytes, value->text->count);
        digits[value->text->count] = 0;
        errno = 0;
        *integer = strtoll(digits, &end, 10);
        return !*end && !errno;
    default:
        return false;
    }
}

bool value_is(const struct value *value, const char *text)
{
    return value->kind == VALUE_TEXT && strlen(text) == value->text->count &&
           !memcmp(value->text->bytes, text, value->text->count);
}

static int from_json(struct arena *arena, json_t *json, int depth, struct value *value);

static int from_array(struct arena *arena, json_t *json, int depth, struct value *value)
{
    size_t index;
    json_t *element;
    int result = value_list(arena, VALUE_LIST, value);
    json_array_foreach(json, index, element)
    {
        struct value item;
        if (result || from_json(arena, element, depth + 1, &item) ||
            value_append(arena, value->list, &item, 1))
            return -1;
    }
    return result;
}

static int from_object(struct arena *arena, json_t *json, int depth, struct value *value)
{
    const char *key;
    json_t *element;
    int result = value_list(arena, VALUE_DICT, value);
    json_object_foreach(json, key, element)
    {
        struct value pair[2];
        if (result || value_text(arena, key, strlen(key), &pair[0]) ||
            from_json(arena, element, depth + 1, &pair[1]) ||
            value_append(arena, value->list, pair, 2))
            return -1;
    }
    return result;
}

static int from_json(struct arena *arena, json_t *json, int depth, struct value *value)
{
    *value = (struct value){.kind = VALUE_NONE};
    if (depth > DEPTH_MAX)
        return 0;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return from_object(arena, json, depth, value);
    case JSON_ARRAY:
        return from_array(arena, json, depth, value);
    case JSON_STRING:
        return value_text(arena, json_string_value(json), json_string_length(json), value);
    case JSON_INTEGER:
        *value = (struct value){.kind = VALUE_INT, .integer = json_integer_value(json)};
        return 0;
    case JSON_REAL:
        *value = (struct value){.kind = VALUE_FLOAT, .number = json_real_value(json)};
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        *value = (struct value){.kind = VALUE_BOOL, .integer = json_is_true(json)};
        return 0;
    default:
        return 0;
    }
}

/* Texts are copied out of the library's tree, which does not outlive this call. */
static int keep_texts(struct arena *arena, struct value *value, int depth)
{
    if (value->kind == VALUE_TEXT) {
        char *copy = arena_take(arena, (size_t)value->text->count + 1);
        if (!copy)
            return -1;
        memcpy(copy, value->text->bytes, value->text->count);
        value->text->bytes = copy;
    }
    if ((value->kind == VALUE_LIST || value->kind == VALUE_DICT) && depth <= DEPTH_MAX)
        for (uint32_t i = 0; i < value->list->count; i++)
            if (keep_texts(arena, &value->list->item[i], depth + 1))
                return -1;
    return 0;
}

int json_tree_read(struct arena *arena, const char *bytes, size_t count, struct value *value,
                   struct error *err)
{
    json_error_t wrong;
    json_t *json = json_loadb(bytes, count, 0, &wrong);
    if (!json)
        return error_set(err, "it is damaged at line %d, byte %d: %s", wrong.line, wrong.position,
                         wrong.text);
    int failed = from_json(arena, json, 0, value) || keep_texts(arena, value, 0);
    json_decref(json);
    return failed ? error_set(err, OUT_OF_MEMORY) : 0;
}
