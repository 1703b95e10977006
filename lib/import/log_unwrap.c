/* log_unwrap.c: takes the line that a program printed out of what a container or a log service
 * made of it. */
#include "lib/import/log_unwrap.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/import/log_line.h"

enum { WHOLE_MAX_BYTES = 1 << 20, PIECE_BYTES = 16 << 10, TIME_BYTES = 40 };
enum { ESCAPE = 0x1b, BELL = 0x07 };
enum { NUMBERED_LEAST = 3, NO_RANK_LEAST = 256 }; /* lines that count; a number in few lines */
enum unwrapped { AS_IT_IS, WAITS, WHOLE };

/* --- colours --- */

/* Behind the escape sequence that begins at `at`: "ESC [ 3 6 m", or "ESC ] ... BEL". */
static const char *escape_end(const char *at, const char *end)
{
    if (++at == end)
        return at;
    char kind = *at++;
    if (kind == '[') {
        while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x40)
            at++;
        return at < end ? at + 1 : at;
    }
    if (kind != ']')
        return at;
    while (at < end && *at != BELL && *at != ESCAPE)
        at++;
    return at < end && *at == BELL ? at + 1 : at;
}

static size_t remove_escapes(char *text, size_t bytes)
{
    char *to = memchr(text, ESCAPE, bytes);
    const char *end = text + bytes, *at = to;
    if (!to)
        return bytes;
    while (at < end) {
        if (*at == ESCAPE)
            at = escape_end(at, end);
        else
            *to++ = *at++;
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* --- the line that is put together --- */

static char *append_unwrapped(struct log_unwrap *unwrap, const char *text, size_t bytes)
{
    if (!ARRAY_RESERVE(unwrap->text, unwrap->capacity, unwrap->bytes + bytes + 1)) {
        unwrap->no_memory = true;
        return NULL;
    }
    memcpy(unwrap->text + unwrap->bytes, text, bytes);
    unwrap->bytes += bytes;
    unwrap->text[unwrap->bytes] = '\0';
    return unwrap->text;
}

static char *take_whole(struct log_unwrap *unwrap, size_t *bytes)
{
    unwrap->open = false;
    if (unwrap->bytes && unwrap->text[unwrap->bytes - 1] == '\n')
        unwrap->text[--unwrap->bytes] = '\0';
    *bytes = unwrap->bytes;
    unwrap->bytes = 0;
    return unwrap->text;
}

/* --- CRI: "2026-11-23T06:24:44.1Z stderr F text"; P: the line goes on in the next one --- */

/* How long "stderr F " is, if the text continues so behind its time; 0. */
static size_t cri_header(const char *text, bool *partial)
{
    if (strncmp(text, "stdout ", 7) != 0 && strncmp(text, "stderr ", 7) != 0)
        return 0;
    if ((text[7] != 'F' && text[7] != 'P') || text[8] != ' ')
        return 0;
    *partial = text[7] == 'P';
    return 9;
}

static enum unwrapped unwrap_cri(struct log_unwrap *unwrap, const char *text, size_t bytes,
                                 size_t time, size_t header, bool partial)
{
    size_t before = time + 1 + header;
    if ((!unwrap->open && !append_unwrapped(unwrap, text, time + 1)) ||
        !append_unwrapped(unwrap, text + before, bytes - before))
        return WAITS;
    unwrap->open = partial && unwrap->bytes < WHOLE_MAX_BYTES;
    return unwrap->open ? WAITS : WHOLE;
}

/* --- JSON: one object a line, with the text in one of its strings --- */

static const struct json_key {
    const char *name;
    bool pieces; /* Docker cuts lines at 16 KiB; the last piece ends with a newline */
} json_keys[] = {
    {"\"log\"", true},          {"\"textPayload\"", false}, {"\"message\"", false},
    {"\"MESSAGE\"", false},     {"\"msg\"", false},         {"\"line\"", false},
    {"\"log_message\"", false},
};
static const char *const time_keys[] = {"\"time\"", "\"timestamp\"", "\"@timestamp\"", "\"ts\""};

static bool is_quoted(const char *quoted, const char *name)
{
    size_t bytes = strlen(name);
    return strlen(quoted) == bytes + 2 && !memcmp(quoted + 1, name, bytes);
}

int log_unwrap_key(const char *name)
{
    for (size_t i = 0; i < sizeof json_keys / sizeof *json_keys; i++)
        if (is_quoted(json_keys[i].name, name))
            return (int)i;
    return -1;
}

bool log_unwrap_time_key(const char *name)
{
    for (size_t i = 0; i < sizeof time_keys / sizeof *time_keys; i++)
        if (is_quoted(time_keys[i], name))
            return true;
    return false;
}

bool log_unwrap_has_keys(const char *text)
{
    bool has_line = false, has_time = false;
    for (size_t i = 0; i < sizeof json_keys / sizeof *json_keys; i++)
        has_line |= strstr(text, json_keys[i].name) != NULL;
    for (size_t i = 0; i < sizeof time_keys / sizeof *time_keys; i++)
        has_time |= strstr(text, time_keys[i]) != NULL;
    return has_line && has_time;
}

/* The string that is the key's value, behind its quote; NULL. */
static const char *json_string_of(const char *text, const char *key)
{
    for (const char *found = strstr(text, key); found; found = strstr(found + 1, key)) {
        const char *at = found + strlen(key);
        at += strspn(at, " ");
        if (*at != ':')
            continue;
        at += 1 + strspn(at + 1, " ");
        if (*at == '"')
            return at + 1;
    }
    return NULL;
}

/* "\u001b": a control character; others are of no use here. */
static char unescape_unicode(const char *digits)
{
    char copy[5] = "", *end;
    strncpy(copy, digits, 4);
    unsigned long code = strtoul(copy, &end, 16);
    return end == copy + 4 && code > 0 && code < 128 ? (char)code : '?';
}

/* Appends the string up to its closing quote, or to the end of a line that was cut. */
static char *append_unescaped(struct log_unwrap *unwrap, const char *text)
{
    static const char from[] = "ntrbf", to[] = "\n\t\r\b\f";
    size_t before = unwrap->bytes;
    if (!append_unwrapped(unwrap, text, strlen(text)))
        return NULL;
    char *out = unwrap->text + before;
    for (const char *at = text; *at && *at != '"'; at++) {
        if (*at != '\\' || !at[1]) {
            *out++ = *at;
            continue;
        }
        const char *letter = strchr(from, *++at);
        if (*at == 'u' && strnlen(at + 1, 4) == 4) {
            *out++ = unescape_unicode(at + 1);
            at += 4;
        } else {
            *out++ = letter ? to[letter - from] : *at;
        }
    }
    *out = '\0';
    unwrap->bytes = (size_t)(out - unwrap->text);
    return unwrap->text;
}

/* The record's time comes before its text, where a launcher would print it. */
static bool append_json_time(struct log_unwrap *unwrap, const char *text)
{
    for (size_t i = 0; i < sizeof time_keys / sizeof *time_keys; i++) {
        const char *time = json_string_of(text, time_keys[i]);
        size_t bytes = time ? strcspn(time, "\"") : 0;
        if (bytes && bytes < TIME_BYTES && log_prefix_time(time, bytes))
            return append_unwrapped(unwrap, time, bytes) && append_unwrapped(unwrap, " ", 1);
    }
    return true;
}

static enum unwrapped unwrap_json(struct log_unwrap *unwrap, const char *text, size_t bytes)
{
    const struct json_key *key = json_keys, *end = key + sizeof json_keys / sizeof *json_keys;
    const char *string = NULL;
    for (; key < end && !(string = json_string_of(text, key->name)); key++)
        ;
    if (!string)
        return AS_IT_IS;
    if ((!unwrap->open && !append_json_time(unwrap, text)) || !append_unescaped(unwrap, string))
        return WAITS;
    unwrap->open = key->pieces && bytes > PIECE_BYTES && unwrap->bytes < WHOLE_MAX_BYTES &&
                   unwrap->text[unwrap->bytes - 1] != '\n';
    return unwrap->open ? WAITS : WHOLE;
}

/* --- the whole --- */

char *log_unwrap(struct log_unwrap *unwrap, char *text, size_t *bytes)
{
    size_t blanks = strspn(text, " \t"), time = strcspn(text, " "), header = 0;
    bool partial = false;
    enum unwrapped state = AS_IT_IS;
    if (time >= 19 && time < TIME_BYTES && text[time] && log_prefix_time(text, time))
        header = cri_header(text + time + 1, &partial);
    if (header)
        state = unwrap_cri(unwrap, text, *bytes, time, header, partial);
    else if (text[blanks] == '{')
        state = unwrap_json(unwrap, text + blanks, *bytes);
    if (state == WAITS)
        return NULL;
    char *line = state == WHOLE ? take_whole(unwrap, bytes) : text;
    *bytes = remove_escapes(line, *bytes);
    return line;
}

char *log_unwrap_rest(struct log_unwrap *unwrap, size_t *bytes)
{
    if (!unwrap->open)
        return NULL;
    char *line = take_whole(unwrap, bytes);
    *bytes = remove_escapes(line, *bytes);
    return line;
}

void log_unwrap_free(struct log_unwrap *unwrap)
{
    free(unwrap->text);
    *unwrap = (struct log_unwrap){0};
}

/* --- numbered lines --- */

size_t log_number_bytes(const char *text)
{
    size_t begin = strspn(text, " "), bracket = text[begin] == '[';
    size_t digits = strspn(text + begin + bracket, "0123456789");
    const char *behind = text + begin + bracket + digits;
    if (!digits || digits > 9 || !strchr(bracket ? "]" : ":|\t", *behind) || !*behind)
        return 0;
    return begin + bracket + digits + 1;
}

bool log_is_numbered(const char *text, size_t bytes)
{
    const char *end = text + bytes;
    unsigned long before = 0, first = 0, lines = 0;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        if (!newline && lines) /* the last may be cut */
            break;
        size_t begin = strspn(text, " [");
        unsigned long number = log_number_bytes(text) ? strtoul(text + begin, NULL, 10) : 0;
        if (!number || (lines && number != before + 1)) /* ranks begin with 0, and repeat */
            return false;
        first = lines++ ? first : number;
        before = number;
        if (!newline)
            break;
        text = newline + 1;
    }
    return lines >= NUMBERED_LEAST || first >= NO_RANK_LEAST;
}
