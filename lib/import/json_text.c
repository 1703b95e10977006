/* json_text.c: strings (escapes, UTF-8) and numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/import/json_internal.h"

/* Makes room for `bytes` more and a NUL. */
static int reserve_text(struct json_stream *json, size_t bytes)
{
    size_t need = json->length + bytes + 1;
    if (json->length + bytes > json->text_max)
        return json_fail(json, json->token_offset, "a string of more than %zu bytes",
                         json->text_max);
    if (!ARRAY_RESERVE(json->text, json->capacity, need))
        return json_fail(json, json->token_offset, OUT_OF_MEMORY " for a string of %zu bytes",
                         need);
    return 0;
}

static int append_text(struct json_stream *json, const char *bytes, size_t count)
{
    if (json->skipping)
        return 0;
    if (reserve_text(json, count))
        return -1;
    memcpy(json->text + json->length, bytes, count);
    json->length += count;
    return 0;
}

/* Of a character in UTF-8. */
static size_t count_code_bytes(uint32_t code)
{
    if (code < 0x80)
        return 1;
    if (code < 0x800)
        return 2;
    return code < 0x10000 ? 3 : 4;
}

static int append_code(struct json_stream *json, uint32_t code)
{
    char bytes[4];
    size_t count = count_code_bytes(code);
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(lead[count] | code);
    return append_text(json, bytes, count);
}

/* Something that JSON does not allow: an error, unless the options are lenient. */
static int forgive(struct json_stream *json, const char *what)
{
    if (!json->lenient)
        return json_fail(json, json_position(json), "%s in a string", what);
    return 0;
}

static int forgive_code(struct json_stream *json, const char *what)
{
    return forgive(json, what) ? -1 : append_code(json, 0xfffd);
}

static int end_text(struct json_stream *json)
{
    return json_fail(json, json_position(json), "the text ends inside of a string");
}

/* How many bytes from `at` are plain: no quote, backslash, control character or part of a longer
 * character. Eight at a time, since most of a trace is strings. */
static size_t plain_run(const char *at, const char *end)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    const char *start = at;
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
        if ((((quote - ones) & ~quote) | ((slash - ones) & ~slash) | (word - ones * 32) | word) &
            high)
            break;
    }
    while (at < end && (unsigned char)*at >= 32 && (unsigned char)*at < 128 && *at != '"' &&
           *at != '\\')
        at++;
    return (size_t)(at - start);
}

/* Four hexadecimal digits: 0 to 0xffff, -1 if they are none. */
static int32_t read_hex(struct json_stream *json)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = json_peek(json);
        int digit = c >= '0' && c <= '9'                 ? c - '0'
                    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                         : -1;
        if (c < 0 || digit < 0)
            return -1;
        value = value << 4 | digit;
        json->at++;
    }
    return value;
}

/* The code of an escape after "\u"; half of a pair without its other half is U+FFFD. */
static int read_unicode(struct json_stream *json)
{
    int32_t code = read_hex(json);
    while (code >= 0xd800 && code < 0xdc00) { /* a first half */
        if (json_peek(json) != '\\')
            return forgive_code(json, "half of a surrogate pair");
        json->at++;
        if (json_peek(json) != 'u') {
            if (forgive_code(json, "half of a surrogate pair"))
                return -1;
            return 1; /* a backslash was taken: go on as after one */
        }
        json->at++;
        int32_t second = read_hex(json);
        if (second >= 0xdc00 && second < 0xe000)
            return append_code(json, 0x10000 + ((uint32_t)(code - 0xd800) << 10) +
                                         (uint32_t)(second - 0xdc00));
        if (forgive_code(json, "half of a surrogate pair"))
            return -1;
        code = second;
    }
    if (code < 0)
        return forgive_code(json, "a \\u escape without four hexadecimal digits");
    return code >= 0xdc00 && code < 0xe000 ? forgive_code(json, "half of a surrogate pair")
                                           : append_code(json, (uint32_t)code);
}

/* After a backslash. Returns 0, -1, or 1 if another backslash was taken. */
static int read_escape(struct json_stream *json)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int c = json_peek(json);
    if (c < 0)
        return end_text(json);
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        json->at++;
        return append_text(json, &values[name - names], 1);
    }
    if (c == 'u') {
        json->at++;
        return read_unicode(json);
    }
    return forgive(json, "an unknown escape") ? -1 : append_text(json, "\\", 1);
}

/* Of the character of several bytes that starts so; 0: none does. */
static size_t count_lead_bytes(unsigned char lead)
{
    if (lead < 0xc2 || lead >= 0xf5)
        return 0;
    if (lead < 0xe0)
        return 2;
    return lead < 0xf0 ? 3 : 4;
}

/* A character of several bytes (Unicode, table 3-7). What is no character becomes U+FFFD. */
static int read_multibyte(struct json_stream *json)
{
    unsigned char lead = (unsigned char)*json->at++;
    char bytes[4] = {(char)lead};
    size_t count = count_lead_bytes(lead);
    int low = 0x80, top = 0xbf;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xed)
        top = 0x9f;
    else if (lead == 0xf4)
        top = 0x8f;
    for (size_t i = 1; i < count; i++) {
        int c = json_peek(json);
        if (c < low || c > top) {
            count = 0;
            break;
        }
        bytes[i] = (char)c;
        json->at++;
        low = 0x80;
        top = 0xbf;
    }
    return count ? append_text(json, bytes, count) : forgive_code(json, "bytes that are no UTF-8");
}

int json_read_string(struct json_stream *json)
{
    json->at++;
    json->length = 0;
    for (;;) {
        size_t run = plain_run(json->at, json->end);
        if (run && append_text(json, json->at, run))
            return -1;
        json->at += run;
        int c = json_peek(json), result = 0;
        if (c < 0)
            return end_text(json);
        if (c == '"')
            break;
        if (c == '\\') {
            json->at++;
            do
                result = read_escape(json);
            while (result == 1);
        } else if (c >= 0x80) {
            result = read_multibyte(json);
        } else if (c < 32) {
            result = forgive(json, "a bare control character") ? -1
                                                               : append_text(json, json->at, 1);
            json->at++;
        }
        if (result < 0)
            return -1;
    }
    json->at++;
    if (json->skipping)
        return 0;
    if (reserve_text(json, 0))
        return -1;
    json->text[json->length] = '\0';
    return 0;
}

static int take_digits(struct json_stream *json, char *text, size_t *length)
{
    int c;
    while ((c = json_peek(json)) >= '0' && c <= '9') {
        if (*length == JSON_NUMBER_MAX)
            return json_fail(json, json->token_offset, "a number of more than %d characters",
                             JSON_NUMBER_MAX);
        text[(*length)++] = (char)c;
        json->at++;
    }
    return 0;
}

static bool collect_text(struct json_stream *json, char *text, size_t *length, int wanted)
{
    if (json_peek(json) != wanted || *length == JSON_NUMBER_MAX)
        return false;
    text[(*length)++] = (char)wanted;
    json->at++;
    return true;
}

/* Takes as much as can be a number; the caller looks whether it ends in a digit. */
static int collect_number(struct json_stream *json, char *text, size_t *length, bool *is_integer)
{
    collect_text(json, text, length, '-');
    if (!collect_text(json, text, length, '0') && take_digits(json, text, length))
        return -1;
    *is_integer = true;
    if (*length && text[*length - 1] != '-' && collect_text(json, text, length, '.')) {
        *is_integer = false;
        if (take_digits(json, text, length))
            return -1;
    }
    bool has_digit = *length && text[*length - 1] != '-' && text[*length - 1] != '.';
    if (has_digit &&
        (collect_text(json, text, length, 'e') || collect_text(json, text, length, 'E'))) {
        *is_integer = false;
        if (!collect_text(json, text, length, '+'))
            collect_text(json, text, length, '-');
        return take_digits(json, text, length);
    }
    return 0;
}

int json_read_number(struct json_stream *json, bool *is_integer)
{
    char text[JSON_NUMBER_MAX];
    size_t length = 0;
    json->length = 0;
    if (collect_number(json, text, &length, is_integer) || reserve_text(json, length))
        return -1;
    memcpy(json->text, text, length);
    json->length = length;
    json->text[length] = '\0';
    return json->failed ? -1 : 0;
}

const char *json_text(const struct json_stream *json, size_t *length)
{
    if (length)
        *length = json->length;
    return json->text ? json->text : "";
}

bool json_int64(const struct json_stream *json, int64_t *value)
{
    const char *text = json_text(json, NULL);
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || *text == ' ' || *text == '+')
        return false;
    *value = number;
    return true;
}

bool json_scaled(const struct json_stream *json, int digits, int64_t *value)
{
    const char *at = json_text(json, NULL);
    bool negative = *at == '-', point = false, any = false;
    __int128 sum = 0;
    int shift = digits, round_up = -1; /* round_up: -1 no digit was left out yet */
    for (at += negative; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        any = true;
        if (sum < (__int128)1 << 100) {
            sum = sum * 10 + (*at - '0');
            shift -= point;
        } else {
            shift += !point;
        }
    }
    if (!any)
        return false;
    if (*at == 'e' || *at == 'E') {
        char *end;
        long exponent = strtol(at + 1, &end, 10);
        if (end == at + 1 || exponent > 1000 || exponent < -1000)
            return false;
        shift += (int)exponent;
        at = end;
    }
    if (*at)
        return false;
    for (; shift > 0 && sum && sum < (__int128)1 << 100; shift--)
        sum *= 10;
    for (; shift < 0 && (sum || round_up > 0); shift++) {
        round_up = sum % 10 >= 5;
        sum /= 10;
    }
    sum += round_up > 0;
    if ((shift > 0 && sum) || sum > INT64_MAX)
        return false;
    *value = negative ? -(int64_t)sum : (int64_t)sum;
    return true;
}
