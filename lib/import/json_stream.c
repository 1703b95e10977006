/* json_stream.c: which tokens may follow each other. */
#include "lib/import/json_stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/invariant.h"
#include "lib/import/json_internal.h"

enum { TEXT_MAX = 1 << 20 };

int json_open(struct json_stream **json, const struct json_options *options, json_read *read,
              void *context, struct error *err)
{
    struct json_stream *new = calloc(1, sizeof *new);
    *json = new;
    if (!new)
        return error_memory(err, "can't read JSON");
    new->read = read;
    new->context = context;
    new->at = new->end = new->buffer;
    new->text_max = options && options->text_max ? options->text_max : TEXT_MAX;
    new->lenient = options && options->lenient;
    return 0;
}

void json_close(struct json_stream *json)
{
    if (!json)
        return;
    free(json->text);
    free(json);
}

int json_fail(struct json_stream *json, uint64_t offset, const char *format, ...)
{
    if (json->failed)
        return -1;
    struct error what;
    va_list args;
    va_start(args, format);
    vsnprintf(what.text, sizeof what.text, format, args);
    va_end(args);
    json->failed = true;
    return error_set(&json->err, "byte %llu: %s", (unsigned long long)offset, what.text);
}

int json_refill(struct json_stream *json)
{
    if (json->drained || json->failed)
        return -1;
    json->buffer_offset = json_position(json);
    json->at = json->end = json->buffer;
    struct error err = {{0}};
    int64_t got = json->read(json->context, json->buffer, sizeof json->buffer, &err);
    if (got < 0)
        return json_fail(json, json->buffer_offset, "%s", err.text);
    if (got == 0) {
        json->drained = true;
        return -1;
    }
    json->end = json->buffer + got;
    return (unsigned char)*json->at;
}

/* The next byte that is not white space, not taken; -1 at the end. */
static int peek_token(struct json_stream *json)
{
    int c;
    while ((c = json_peek(json)) == ' ' || c == '\n' || c == '\t' || c == '\r')
        json->at++;
    json->token_offset = json_position(json);
    return c;
}

/* What `c` is called in a message. */
static const char *byte_name(int c, char name[8])
{
    snprintf(name, 8, c > 32 && c < 127 ? "'%c'" : "0x%02x", (unsigned)c);
    return name;
}

static enum json_token unexpected(struct json_stream *json, int c, const char *wanted)
{
    char name[8];
    if (c < 0 && json->depth)
        json_fail(json, json->token_offset, "the text ends inside of %s; %s was to come",
                  json->is_object[json->depth - 1] ? "an object" : "an array", wanted);
    else if (c < 0)
        json_fail(json, json->token_offset, "there is no JSON value");
    else
        json_fail(json, json->token_offset, "%s where %s was to come", byte_name(c, name), wanted);
    return TOKEN_ERROR;
}

static void after_value(struct json_stream *json)
{
    json->expect = json->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

static enum json_token open_level(struct json_stream *json, bool is_object)
{
    if (json->depth == JSON_DEPTH_MAX) {
        json_fail(json, json->token_offset, "nested deeper than %d levels", JSON_DEPTH_MAX);
        return TOKEN_ERROR;
    }
    json->at++;
    json->is_object[json->depth++] = is_object;
    json->expect = is_object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    return is_object ? TOKEN_OBJECT : TOKEN_ARRAY;
}

static enum json_token close_level(struct json_stream *json)
{
    json->at++;
    invariant(json->depth, "a level that ends has begun");
    bool was_object = json->is_object[--json->depth];
    after_value(json);
    return was_object ? TOKEN_OBJECT_END : TOKEN_ARRAY_END;
}

static enum json_token read_key(struct json_stream *json)
{
    if (json_read_string(json) < 0)
        return TOKEN_ERROR;
    int c;
    while ((c = json_peek(json)) == ' ' || c == '\n' || c == '\t' || c == '\r')
        json->at++;
    if (c != ':') {
        json->token_offset = json_position(json);
        return unexpected(json, c, "':'");
    }
    json->at++;
    json->expect = EXPECT_VALUE;
    return TOKEN_KEY;
}

/* Words by what they mean; those after `null` are not JSON. */
static const struct word {
    const char *text;
    enum json_token token;
    bool lenient;
} words[] = {
    {"true", TOKEN_TRUE, false}, {"false", TOKEN_FALSE, false}, {"null", TOKEN_NULL, false},
    {"NaN", TOKEN_NULL, true},   {"nan", TOKEN_NULL, true},     {"Infinity", TOKEN_NULL, true},
    {"inf", TOKEN_NULL, true},
};

/* Letters up to the first other byte; a minus sign was taken already. */
static enum json_token read_word(struct json_stream *json)
{
    char text[10];
    size_t length = 0;
    int c;
    while ((c = json_peek(json)) >= 0 && ((c | 32) >= 'a' && (c | 32) <= 'z') &&
           length < sizeof text - 1) {
        text[length++] = (char)c;
        json->at++;
    }
    text[length] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].text, text) || (words[i].lenient && !json->lenient))
            continue;
        after_value(json);
        return words[i].token;
    }
    if (length)
        json_fail(json, json->token_offset, "'%s' is no value", text);
    else
        unexpected(json, c, "a value");
    return TOKEN_ERROR;
}

static enum json_token scan_number(struct json_stream *json)
{
    bool is_integer;
    if (json_read_number(json, &is_integer) < 0)
        return TOKEN_ERROR;
    int c = json_peek(json);
    if (json->length == 1 && json->text[0] == '-' && json->lenient && c >= 0 &&
        ((c | 32) == 'i' || (c | 32) == 'n'))
        return read_word(json);
    if (!json->length || json->text[json->length - 1] < '0' || json->text[json->length - 1] > '9')
        return unexpected(json, c, "a digit");
    after_value(json);
    return is_integer ? TOKEN_INTEGER : TOKEN_FRACTION;
}

static enum json_token read_value(struct json_stream *json, int c)
{
    if (c == '{' || c == '[')
        return open_level(json, c == '{');
    if (c == '"') {
        if (json_read_string(json) < 0)
            return TOKEN_ERROR;
        after_value(json);
        return TOKEN_STRING;
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(json);
    return c < 0 ? unexpected(json, c, "a value") : read_word(json);
}

static enum json_token after_comma(struct json_stream *json, int c)
{
    bool in_object = json->is_object[json->depth - 1];
    if (c == (in_object ? '}' : ']'))
        return close_level(json);
    if (c != ',')
        return unexpected(json, c, in_object ? "',' or '}'" : "',' or ']'");
    json->at++;
    c = peek_token(json);
    if (!in_object)
        return read_value(json, c);
    return c == '"' ? read_key(json) : unexpected(json, c, "a key");
}

static enum json_token scan_token(struct json_stream *json)
{
    if (json->failed)
        return TOKEN_ERROR;
    int c = peek_token(json);
    if (json->failed)
        return TOKEN_ERROR;
    switch (json->expect) {
    case EXPECT_VALUE:
        return read_value(json, c);
    case EXPECT_VALUE_OR_END:
        return c == ']' ? close_level(json) : read_value(json, c);
    case EXPECT_KEY_OR_END:
        if (c == '}')
            return close_level(json);
        return c == '"' ? read_key(json) : unexpected(json, c, "a key or '}'");
    case EXPECT_COMMA_OR_END:
        return after_comma(json, c);
    case EXPECT_NOTHING:
        break;
    }
    return c < 0 ? TOKEN_END : unexpected(json, c, "the end of the text");
}

enum json_token json_next(struct json_stream *json)
{
    return json->token = scan_token(json);
}

int json_skip(struct json_stream *json)
{
    int depth = json->depth;
    bool in_level = json->token == TOKEN_OBJECT || json->token == TOKEN_ARRAY;
    if (json->token == TOKEN_ERROR)
        return -1;
    if (!in_level && json->token != TOKEN_KEY)
        return 0;
    depth -= in_level;
    json->skipping = true;
    do {
        if (json_next(json) == TOKEN_ERROR)
            break;
    } while (json->depth > depth);
    json->skipping = false;
    return json->failed ? -1 : 0;
}

int json_depth(const struct json_stream *json)
{
    return json->depth;
}

uint64_t json_offset(const struct json_stream *json)
{
    return json->token_offset;
}

const char *json_error(const struct json_stream *json)
{
    return json->err.text;
}
