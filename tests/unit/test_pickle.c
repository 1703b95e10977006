/* Pickles as they come from Flight Recorders, and as somebody who means harm would write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/import/value.h"

static int read_bytes(struct arena *arena, const void *bytes, size_t count, struct value *value,
                      struct error *err)
{
    /* A block of its own, so that a sanitizer sees a read behind its end. */
    char *copy = malloc(count ? count : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    *err = (struct error){{0}};
    int result = pickle_read(arena, copy, count, value, err);
    if (result)
        assert_true(err->text[0]);
    free(copy);
    return result;
}

#define READ(literal) read_bytes(&arena, literal, sizeof literal - 1, &value, &err)

/* {"a": [1, 300, -2, 1790000000000000000, 0.5, None, True, ("x", "x")]} as PyTorch writes it. */
static const char sample[] =
    "\x80\x02}(X\x01\0\0\0aq\0]("
    "K\x01M\x2c\x01J\xfe\xff\xff\xff\x8a\x08\0\0\xb6\x0b\xce\x5b\xd7\x18G\x3f\xe0\0\0\0\0\0\0N\x88"
    "X\x01\0\0\0xq\x01h\x01\x86"
    "eu.";

static void a_dump_is_read(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct value value;
    struct error err = {{0}};
    int64_t integer;
    assert_int_equal(pickle_read(&arena, sample, sizeof sample - 1, &value, &err), 0);
    assert_int_equal(value.kind, VALUE_DICT);
    assert_int_equal(value.list->count, 2);
    assert_true(value_is(&value.list->item[0], "a"));
    const struct value *list = &value.list->item[1];
    assert_int_equal(list->kind, VALUE_LIST);
    assert_int_equal(list->list->count, 8);
    const int64_t numbers[] = {1, 300, -2, 0x18d75bce0bb60000};
    for (int i = 0; i < 4; i++) {
        assert_true(value_integer(&list->list->item[i], &integer));
        assert_int_equal(integer, numbers[i]);
    }
    assert_int_equal(list->list->item[4].kind, VALUE_FLOAT);
    assert_true(list->list->item[4].number == 0.5);
    assert_int_equal(list->list->item[5].kind, VALUE_NONE);
    assert_int_equal(list->list->item[6].kind, VALUE_BOOL);
    const struct value *pair = &list->list->item[7];
    assert_int_equal(pair->list->count, 2);
    assert_ptr_equal(pair->list->item[0].text, pair->list->item[1].text);
    arena_free(&arena);
}

static void cut_at_every_byte_it_is_refused(void **state)
{
    (void)state;
    for (size_t count = 0; count + 1 < sizeof sample; count++) {
        struct arena arena = {0};
        struct value value;
        struct error err;
        assert_int_equal(read_bytes(&arena, sample, count, &value, &err), -1);
        assert_true(strstr(err.text, "cut off at byte") || strstr(err.text, "damaged at byte"));
        arena_free(&arena);
    }
}

/* Whatever byte is wrong, it ends, and says something. */
static void every_byte_may_be_any_other(void **state)
{
    (void)state;
    for (size_t place = 0; place + 1 < sizeof sample; place++)
        for (int byte = 0; byte < 256; byte++) {
            char changed[sizeof sample];
            struct arena arena = {0};
            struct value value;
            struct error err;
            memcpy(changed, sample, sizeof sample);
            changed[place] = (char)byte;
            read_bytes(&arena, changed, sizeof sample - 1, &value, &err);
            assert_true(arena.total <= 1 << 22);
            arena_free(&arena);
        }
}

static void what_runs_code_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        char opcode;
        const char *name;
    } opcodes[] = {
        {'c', "GLOBAL"},    {'\x93', "STACK_GLOBAL"},
        {'R', "REDUCE"},    {'b', "BUILD"},
        {'i', "INST"},      {'o', "OBJ"},
        {'\x81', "NEWOBJ"}, {'\x92', "NEWOBJ_EX"},
        {'P', "PERSID"},    {'Q', "BINPERSID"},
        {'\x82', "EXT1"},   {'\x83', "EXT2"},
        {'\x84', "EXT4"},
    };
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        char bytes[] = "\x80\x02]?os\nsystem\n.", words[64];
        struct arena arena = {0};
        struct value value;
        struct error err;
        bytes[3] = opcodes[i].opcode;
        assert_int_equal(read_bytes(&arena, bytes, sizeof bytes - 1, &value, &err), -1);
        snprintf(words, sizeof words, "byte 3 is the opcode %s, which can run code",
                 opcodes[i].name);
        assert_non_null(strstr(err.text, words));
        arena_free(&arena);
    }
}

static void lengths_are_not_believed(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct value value;
    struct error err;
    assert_int_equal(READ("\x80\x02X\xff\xff\xff\xff"
                          "abc."),
                     -1);
    assert_non_null(strstr(err.text, "byte 2"));
    assert_non_null(strstr(err.text, "longer than the file"));
    assert_int_equal(READ("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                          "abc."),
                     -1);
    assert_int_equal(READ("\x80\x02\x8b\xff\xff\xff\x7f"
                          "abc."),
                     -1);
    assert_int_equal(READ("\x80\x02\x8a\x09"
                          "123456789."),
                     -1);
    assert_non_null(strstr(err.text, "a number is too large"));
    assert_int_equal(READ("\x80\x02Nr\xff\xff\xff\xff."), -1);
    assert_non_null(strstr(err.text, "memo's index"));
    assert_int_equal(READ("\x80\x02j\xff\xff\xff\x0f."), -1);
    assert_non_null(strstr(err.text, "never made"));
    assert_true(arena.total <= 1 << 21);
    arena_free(&arena);
}

static void the_stack_has_a_floor(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
    } pickles[] = {
        {"u.", 2},        {"e.", 2},      {"s.", 2},      {"a.", 2},        {"]Ks.", 4},
        {"(u.", 3},       {"}(K\1u.", 6}, {"](K\1s.", 6}, {"K\1(K\2e.", 7}, {"\x85.", 2},
        {"K\1\x87.", 4},  {"0.", 2},      {"1.", 2},      {"2.", 2},        {"q\0.", 3},
        {"t.", 2},        {"(K\1d.", 5},  {"(.", 2},      {".", 1},         {"K\1K\2.", 5},
        {"K\1(\x85.", 5}, {"\x94.", 2},   {"h\0.", 3},    {"", 0},          {"\x80", 1},
    };
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        struct arena arena = {0};
        struct value value;
        struct error err;
        assert_int_equal(read_bytes(&arena, pickles[i].bytes, pickles[i].count, &value, &err), -1);
        arena_free(&arena);
    }
}

static void depth_is_bounded(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    struct arena arena = {0};
    struct value value;
    struct error err;
    char *marks = malloc(DEEP), *lists = malloc(2 * DEEP + 1);
    assert_non_null(marks);
    assert_non_null(lists);
    memset(marks, '(', DEEP);
    assert_int_equal(read_bytes(&arena, marks, DEEP, &value, &err), -1);
    assert_non_null(strstr(err.text, "nested too deeply"));
    /* Lists in lists without marks cost what they are long, and nothing follows them down. */
    memset(lists, ']', DEEP);
    memset(lists + DEEP, 'a', DEEP - 1);
    lists[2 * DEEP - 1] = '.';
    assert_int_equal(read_bytes(&arena, lists, 2 * DEEP, &value, &err), 0);
    assert_int_equal(value.kind, VALUE_LIST);
    /* A list that holds itself. */
    assert_int_equal(READ("]q\0h\0a."), 0);
    assert_ptr_equal(value.list->item[0].list, value.list);
    free(marks);
    free(lists);
    arena_free(&arena);
}

/* A few bytes must not become many: each repeats the list before it. */
static void memory_follows_the_file(void **state)
{
    (void)state;
    enum { TIMES = 4000 };
    static char bytes[3 * TIMES + 8];
    struct arena arena = {0};
    struct value value;
    struct error err;
    size_t count = 0;
    bytes[count++] = ']';
    for (int i = 0; i < TIMES; i++) {
        bytes[count++] = '2'; /* the list itself */
        bytes[count++] = 'a'; /* into itself */
    }
    bytes[count++] = '.';
    assert_int_equal(read_bytes(&arena, bytes, count, &value, &err), 0);
    assert_int_equal(value.list->count, TIMES);
    assert_true(arena.total <= 1 << 22);
    arena_free(&arena);
}

static void json_gives_the_same(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct value value;
    struct error err = {{0}};
    int64_t integer;
    const char text[] = "{\"a\": [1, \"12\", 0.5, null, true, [\"x\"]]}";
    assert_int_equal(json_tree_read(&arena, text, sizeof text - 1, &value, &err), 0);
    const struct value *list = &value.list->item[1];
    assert_int_equal(list->list->count, 6);
    assert_true(value_integer(&list->list->item[1], &integer));
    assert_int_equal(integer, 12);
    assert_false(value_integer(&list->list->item[3], &integer));
    assert_int_equal(list->list->item[5].kind, VALUE_LIST);
    for (size_t cut = 0; cut + 1 < sizeof text - 1; cut++) {
        assert_int_equal(json_tree_read(&arena, text, cut, &value, &err), -1);
        assert_non_null(strstr(err.text, "line"));
    }
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dump_is_read),
        cmocka_unit_test(cut_at_every_byte_it_is_refused),
        cmocka_unit_test(every_byte_may_be_any_other),
        cmocka_unit_test(what_runs_code_is_refused_by_name),
        cmocka_unit_test(lengths_are_not_believed),
        cmocka_unit_test(the_stack_has_a_floor),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(memory_follows_the_file),
        cmocka_unit_test(json_gives_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
