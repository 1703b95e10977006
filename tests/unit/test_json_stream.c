/* The JSON reader: what it takes, what it refuses and where, in pieces of any size. jansson is the
 * oracle for texts that chance made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "lib/import/json_stream.h"
#include "tests/unit/trace_files.h"

/* A text that comes in pieces of `piece` bytes. */
struct text {
    const char *at;
    size_t left, piece;
    bool fails; /* instead of ending */
};

static int64_t read_piece(void *context, void *buffer, size_t bytes, struct error *err)
{
    struct text *text = context;
    if (!text->left && text->fails)
        return error_set(err, "the disk is gone");
    size_t count = text->left < text->piece ? text->left : text->piece;
    count = count < bytes ? count : bytes;
    memcpy(buffer, text->at, count);
    text->at += count;
    text->left -= count;
    return (int64_t)count;
}

static const struct json_options strict = {0}, lenient = {.lenient = true};

static struct json_stream *open_text(struct text *text, const struct json_options *options)
{
    struct json_stream *json;
    assert_int_equal(json_open(&json, options, read_piece, text, NULL), 0);
    return json;
}

/* Writes the tokens of a text as people would: "{ k:a 1 }", and at the end "." or the error. */
static void trace(const char *bytes, size_t length, size_t piece,
                  const struct json_options *options, char *out, size_t room)
{
    static const char *const marks[] = {
        "{", "}", "[", "]", "k:", "s:", "i:", "f:", "true", "false", "null"};
    struct text text = {bytes, length, piece, false};
    struct json_stream *json = open_text(&text, options);
    enum json_token token;
    size_t used = 0;
    out[0] = '\0';
    while ((token = json_next(json)) > TOKEN_END && used < room) {
        bool has_text = token >= TOKEN_KEY && token <= TOKEN_FRACTION;
        used += (size_t)snprintf(out + used, room - used, "%s%s ", marks[token - TOKEN_OBJECT],
                                 has_text ? json_text(json, NULL) : "");
    }
    if (used < room)
        snprintf(out + used, room - used, "%s", token == TOKEN_END ? "." : json_error(json));
    if (token == TOKEN_ERROR)
        assert_int_equal(json_next(json), TOKEN_ERROR);
    else
        assert_int_equal(json_next(json), TOKEN_END);
    json_close(json);
}

static void expect(const char *text, const struct json_options *options, const char *wanted)
{
    char all[1024], piecewise[1024];
    trace(text, strlen(text), 1 << 20, options, all, sizeof all);
    assert_string_equal(all, wanted);
    for (size_t piece = 1; piece < 6; piece++) {
        trace(text, strlen(text), piece, options, piecewise, sizeof piecewise);
        assert_string_equal(piecewise, wanted);
    }
}

static void tokens_come_in_order(void **state)
{
    (void)state;
    expect(" {\"a\" : [1,-2.5e+3 , \"x\"],\"b\":{}, \"c\":[ ],\"d\":[true,false,null]}\n", &strict,
           "{ k:a [ i:1 f:-2.5e+3 s:x ] k:b { } k:c [ ] k:d [ true false null ] } .");
    expect("17", &strict, "i:17 .");
    expect("\"\"", &strict, "s: .");
    expect("[0,-0,0.0,1E9]", &strict, "[ i:0 i:-0 f:0.0 f:1E9 ] .");
}

static void escapes_become_utf8(void **state)
{
    (void)state;
    expect("\"a\\n\\t\\\"\\\\\\/\\u0041\\u00e9\\u20ac\\ud83d\\ude00z\"", &strict,
           "s:a\n\t\"\\/A\u00e9\u20ac\U0001F600z .");
    expect("\"\u00e9\u20ac\U0001F600 plain text that is longer than a word of eight bytes\"",
           &strict,
           "s:\u00e9\u20ac\U0001F600 plain text that is longer than a word of eight bytes .");
    struct text text = {"\"a\\u0000b\"", 10, 100, false};
    struct json_stream *json = open_text(&text, &strict);
    size_t length;
    assert_int_equal(json_next(json), TOKEN_STRING);
    assert_memory_equal(json_text(json, &length), "a\0b", 4);
    assert_int_equal(length, 3);
    json_close(json);
}

static void errors_say_where(void **state)
{
    (void)state;
    expect("", &strict, "byte 0: there is no JSON value");
    expect("{\"a\":1", &strict,
           "{ k:a i:1 byte 6: the text ends inside of an object; ',' or '}' was to come");
    expect("[1,", &strict, "[ i:1 byte 3: the text ends inside of an array; a value was to come");
    expect("[1,]", &strict, "[ i:1 byte 3: ']' where a value was to come");
    expect("[1 2]", &strict, "[ i:1 byte 3: '2' where ',' or ']' was to come");
    expect("{1:2}", &strict, "{ byte 1: '1' where a key or '}' was to come");
    expect("{\"a\":1,}", &strict, "{ k:a i:1 byte 7: '}' where a key was to come");
    expect("{\"a\" 1}", &strict, "{ byte 5: '1' where ':' was to come");
    expect("[1}", &strict, "[ i:1 byte 2: '}' where ',' or ']' was to come");
    expect("[1] x", &strict, "[ i:1 ] byte 4: 'x' where the end of the text was to come");
    expect("[tru]", &strict, "[ byte 1: 'tru' is no value");
    expect("[NaN]", &strict, "[ byte 1: 'NaN' is no value");
    expect("[-]", &strict, "[ byte 1: ']' where a digit was to come");
    expect("[1.]", &strict, "[ byte 1: ']' where a digit was to come");
    expect("[1e]", &strict, "[ byte 1: ']' where a digit was to come");
    expect("[01]", &strict, "[ i:0 byte 2: '1' where ',' or ']' was to come");
    expect("\"abc", &strict, "byte 4: the text ends inside of a string");
    expect("\"a\\x\"", &strict, "byte 3: an unknown escape in a string");
    expect("\"a\tb\"", &strict, "byte 2: a bare control character in a string");
    expect("\"\xff\"", &strict, "byte 2: bytes that are no UTF-8 in a string");
    expect("\"\xc0\xaf\"", &strict, "byte 2: bytes that are no UTF-8 in a string");
    expect("\"\\ud800x\"", &strict, "byte 7: half of a surrogate pair in a string");
    expect("\"\\u12g4\"", &strict,
           "byte 5: a \\u escape without four hexadecimal digits in a string");
}

static void lenient_takes_what_programs_write(void **state)
{
    (void)state;
    expect("[NaN,Infinity,-Infinity,-inf]", &lenient, "[ null null null null ] .");
    expect("\"C:\\path\\x\"", &lenient, "s:C:\\path\\x .");
    expect("\"a\tb\"", &lenient, "s:a\tb .");
    expect("\"\xff"
           "a\xe2\x82\"",
           &lenient,
           "s:\ufffd"
           "a\ufffd .");
    expect("\"\\ud800\\u0041\\ud800\\n\\udc00\"", &lenient, "s:\ufffdA\ufffd\n\ufffd .");
}

static void limits_are_kept(void **state)
{
    (void)state;
    size_t bytes = 3 << 20;
    char *deep = malloc(bytes);
    memset(deep, '[', bytes);
    struct text text = {deep, bytes, bytes, false};
    struct json_stream *json = open_text(&text, &strict);
    int depth = 0;
    while (json_next(json) == TOKEN_ARRAY)
        depth++;
    assert_int_equal(depth, JSON_DEPTH_MAX);
    assert_string_equal(json_error(json), "byte 512: nested deeper than 512 levels");
    json_close(json);

    memset(deep, 'x', bytes);
    deep[0] = '[';
    deep[1] = deep[bytes - 2] = '"';
    deep[bytes - 1] = ']';
    text = (struct text){deep, bytes, bytes, false};
    json = open_text(&text, &(struct json_options){.text_max = 1000});
    assert_int_equal(json_next(json), TOKEN_ARRAY);
    assert_int_equal(json_next(json), TOKEN_ERROR);
    assert_string_equal(json_error(json), "byte 1: a string of more than 1000 bytes");
    json_close(json);

    text = (struct text){deep, bytes, bytes, false}; /* skipped, its length does not matter */
    json = open_text(&text, &(struct json_options){.text_max = 1000});
    assert_int_equal(json_next(json), TOKEN_ARRAY);
    assert_int_equal(json_skip(json), 0);
    assert_int_equal(json_next(json), TOKEN_END);
    json_close(json);

    memset(deep, '9', bytes);
    text = (struct text){deep, bytes, 1, false};
    json = open_text(&text, &strict);
    assert_int_equal(json_next(json), TOKEN_ERROR);
    assert_string_equal(json_error(json), "byte 0: a number of more than 128 characters");
    json_close(json);
    free(deep);
}

static void a_reader_that_fails_is_an_error(void **state)
{
    (void)state;
    struct text text = {"[1,", 3, 2, true};
    struct json_stream *json = open_text(&text, &strict);
    assert_int_equal(json_next(json), TOKEN_ARRAY);
    assert_int_equal(json_next(json), TOKEN_INTEGER);
    assert_int_equal(json_next(json), TOKEN_ERROR);
    assert_string_equal(json_error(json), "byte 3: the disk is gone");
    json_close(json);
}

static void skip_passes_over_one_value(void **state)
{
    (void)state;
    const char document[] = "{\"a\":{\"x\":[1,{\"y\":[]}]},\"b\":7,\"c\":[[1],[2,3]],\"d\":8}";
    struct text text = {document, strlen(document), 3, false};
    struct json_stream *json = open_text(&text, &strict);
    int64_t sum = 0, value;
    assert_int_equal(json_next(json), TOKEN_OBJECT);
    while (json_next(json) == TOKEN_KEY) {
        char key = json_text(json, NULL)[0];
        if (key == 'b' || key == 'd') {
            json_next(json);
            assert_true(json_int64(json, &value));
            sum += value;
        } else if (key == 'c') {
            assert_int_equal(json_next(json), TOKEN_ARRAY);
            assert_int_equal(json_next(json), TOKEN_ARRAY);
            assert_int_equal(json_skip(json), 0);
            assert_int_equal(json_next(json), TOKEN_ARRAY);
            assert_int_equal(json_skip(json), 0);
            assert_int_equal(json_next(json), TOKEN_ARRAY_END);
        } else {
            assert_int_equal(json_skip(json), 0);
        }
    }
    assert_int_equal(sum, 15);
    assert_int_equal(json_next(json), TOKEN_END);
    json_close(json);
}

/* The value of one number, read from a text. */
static struct json_stream *number(const char *digits, struct text *text)
{
    *text = (struct text){digits, strlen(digits), 7, false};
    struct json_stream *json = open_text(text, &strict);
    assert_true(json_next(json) > TOKEN_END);
    return json;
}

static void numbers_keep_every_bit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int digits;
        bool fits;
        int64_t value;
    } cases[] = {
        {"9223372036854775807", 0, true, INT64_MAX},
        {"9223372036854775808", 0, false, 0},
        {"-9223372036854775807", 0, true, -INT64_MAX},
        {"1763735123456789.123", 3, true, 1763735123456789123},
        {"1.0005", 3, true, 1001},
        {"1.00049999", 3, true, 1000},
        {"-1.0005", 3, true, -1001},
        {"1.5e3", 0, true, 1500},
        {"1.7e+15", 3, true, 1700000000000000000},
        {"5e-1", 0, true, 1},
        {"4e-1", 0, true, 0},
        {"0.0", 3, true, 0},
        {"0e999", 3, true, 0},
        {"1e999", 0, false, 0},
        {"1e-900", 3, true, 0},
        {"1e99999999999", 0, false, 0},
        {"0.00000000000000000000000000000000000000000000000000000000000000000001e70", 0, true, 100},
        {"123456789012345678901234567890123456789012345678901234567890", 0, false, 0},
        {"0.1234567890123456789012345678901234567890123456789", 3, true, 123},
        {"\"12\"", 0, true, 12},
        {"\"x\"", 0, false, 0},
        {"\"\"", 0, false, 0},
        {"\"1 \"", 0, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text;
        struct json_stream *json = number(cases[i].text, &text);
        int64_t value = 0;
        bool fits = json_scaled(json, cases[i].digits, &value);
        if (fits != cases[i].fits || value != cases[i].value)
            fail_msg("%s scaled by 10^%d gave %s %lld", cases[i].text, cases[i].digits,
                     fits ? "" : "nothing,", (long long)value);
        json_close(json);
    }
    struct text text;
    int64_t value;
    struct json_stream *json = number("18446744073709551615", &text);
    assert_false(json_int64(json, &value));
    json_close(json);
    json = number("-1", &text);
    assert_true(json_int64(json, &value) && value == -1);
    json_close(json);
    json = number("1.5", &text);
    assert_false(json_int64(json, &value));
    json_close(json);
}

static const char sample[] =
    "{\"schemaVersion\": 1, \"ts\": 1763735123456789.123, \"name\": \"k\\u00e9\\n\\ud83d\\ude00 "
    "\u20ac\", \"list\": [[1, -2, 3.5e-7], "
    "[], {}, [true, false, null]], \"o\": {\"deep\": {\"er\": [\"a\", \"\"]}}}";

static void every_cut_is_an_error(void **state)
{
    (void)state;
    char out[4096];
    for (size_t length = 0; length < strlen(sample); length++) {
        trace(sample, length, 1 + length % 7, &strict, out, sizeof out);
        const char *error = strstr(out, "byte ");
        if (!error)
            fail_msg("cut at byte %zu it was taken: %s", length, out);
        if (strtoull(error + strlen("byte "), NULL, 10) > length)
            fail_msg("cut at byte %zu, the error is behind the end: %s", length, error);
    }
}

/* Whether we take a text as a whole. */
static bool we_take(const char *bytes, size_t length, size_t piece, bool skip)
{
    struct text text = {bytes, length, piece, false};
    struct json_stream *json = open_text(&text, &strict);
    enum json_token token = json_next(json);
    if (skip)
        json_skip(json);
    while (token > TOKEN_END)
        token = json_next(json);
    json_close(json);
    return token == TOKEN_END;
}

/* What jansson refuses although it is JSON, or for reasons of memory: integers and fractions that
 * do not fit its types. */
static bool is_of_types(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);
    return code == json_error_numeric_overflow || code == json_error_null_character;
}

static void chance_agrees_with_jansson(void **state)
{
    (void)state;
    static const char alphabet[] =
        "{}[]\",:\\u0123456789abcdefn-+.eE \n\x01\xff\xc3\xa9\xed\xa0\xe2\x82";
    uint64_t seed = 88172645463325252u;
    int taken = 0, refused = 0;
    for (int i = 0; i < 60000; i++) {
        char text[sizeof sample];
        size_t length = strlen(sample);
        memcpy(text, sample, sizeof text);
        for (int changes = (int)(random_word(&seed) % 3) + 1; changes > 0; changes--)
            text[random_word(&seed) % length] =
                alphabet[random_word(&seed) % (sizeof alphabet - 1)];
        json_error_t error;
        json_t *tree = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        bool ours = we_take(text, length, 1 + random_word(&seed) % 40, i % 2);
        if (!tree && is_of_types(&error))
            continue;
        if (ours != (tree != NULL))
            fail_msg("we %s this, jansson %s it (%s): %.*s", ours ? "take" : "refuse",
                     tree ? "takes" : "refuses", tree ? "" : error.text, (int)length, text);
        tree ? taken++ : refused++;
        json_decref(tree);
    }
    assert_true(taken > 1000 && refused > 1000); /* both happened */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_come_in_order),
        cmocka_unit_test(escapes_become_utf8),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(lenient_takes_what_programs_write),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(a_reader_that_fails_is_an_error),
        cmocka_unit_test(skip_passes_over_one_value),
        cmocka_unit_test(numbers_keep_every_bit),
        cmocka_unit_test(every_cut_is_an_error),
        cmocka_unit_test(chance_agrees_with_jansson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
