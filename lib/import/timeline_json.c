/* timeline_json.c: rows of a timeline as JSON: an object in each line, in arrays, or Chrome's
 * events, whose "args" hold what the event itself has no key for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/input.h"
#include "lib/import/json_stream.h"
#include "lib/import/timeline.h"

struct timeline_json {
    struct import *import;
    struct foreign_timeline *timeline;
    const char *path;
    struct json_stream *json;
    struct timeline_texts texts;
    char phase[8];   /* Chrome's "ph"; "" where it has none */
    char thread[24]; /* Chrome's "pid": the rank, where nothing else says it */
    uint64_t rows;
    bool no_memory;
};

/* What input_line left of a line: json_stream reads it like a file. */
struct timeline_line {
    const char *at;
    size_t bytes;
};

static int64_t read_line_bytes(void *context, void *buffer, size_t bytes, struct error *err)
{
    struct timeline_line *line = context;
    (void)err;
    if (bytes > line->bytes)
        bytes = line->bytes;
    memcpy(buffer, line->at, bytes);
    line->at += bytes;
    line->bytes -= bytes;
    return (int64_t)bytes;
}

static int64_t read_file_bytes(void *context, void *buffer, size_t bytes, struct error *err)
{
    return input_read(context, buffer, bytes, err);
}

static void append_text(char *text, const char *more)
{
    size_t length = strlen(text);
    if (length + strlen(more) + 2 < TIMELINE_FIELD_BYTES)
        snprintf(text + length, TIMELINE_FIELD_BYTES - length, "%s%s", length ? "," : "", more);
}

/* A scalar as its text, an array as its elements with commas between. */
static int read_value_text(struct timeline_json *reader, char *text)
{
    int depth = json_depth(reader->json);
    text[0] = '\0';
    do {
        enum json_token token = json_next(reader->json);
        if (token == TOKEN_ERROR)
            return -1;
        if (token == TOKEN_STRING || token == TOKEN_INTEGER || token == TOKEN_FRACTION)
            append_text(text, json_text(reader->json, NULL));
    } while (json_depth(reader->json) > depth);
    return 0;
}

static int read_timeline_row(struct timeline_json *reader);

static int read_member(struct timeline_json *reader, const char *key)
{
    struct timeline_texts *texts = &reader->texts;
    char value[TIMELINE_FIELD_BYTES];
    int digits;
    enum timeline_field field = timeline_field_find(key, strlen(key), &digits);
    bool is_phase = !strcmp(key, "ph"), is_thread = !strcmp(key, "pid");
    if (!strcmp(key, "args"))
        return json_next(reader->json) == TOKEN_OBJECT ? read_timeline_row(reader)
                                                       : json_skip(reader->json);
    if (field == FIELD_NONE && !is_phase && !is_thread)
        return json_skip(reader->json);
    if (read_value_text(reader, value))
        return -1;
    if (is_phase)
        snprintf(reader->phase, sizeof reader->phase, "%.7s", value);
    else if (is_thread)
        snprintf(reader->thread, sizeof reader->thread, "%.23s", value);
    else if (!texts->text[field][0]) {
        memcpy(texts->text[field], value, sizeof value);
        texts->digits[field] = digits;
    }
    return 0;
}

/* The members of an object whose beginning was read. */
static int read_timeline_row(struct timeline_json *reader)
{
    char key[64];
    enum json_token token;
    while ((token = json_next(reader->json)) == TOKEN_KEY) {
        snprintf(key, sizeof key, "%s", json_text(reader->json, NULL));
        if (read_member(reader, key))
            return -1;
    }
    return token == TOKEN_ERROR ? -1 : 0;
}

/* Chrome's events other than complete ones ("X") name tracks, or are marks. */
static int take_timeline_row(struct timeline_json *reader, const char *where)
{
    struct timeline_texts *texts = &reader->texts;
    memset(texts->text, 0, sizeof texts->text);
    reader->phase[0] = reader->thread[0] = '\0';
    if (read_timeline_row(reader))
        return -1;
    if (reader->phase[0] && strcmp(reader->phase, "X") != 0)
        return 0;
    if (!texts->text[FIELD_RANK][0])
        snprintf(texts->text[FIELD_RANK], TIMELINE_FIELD_BYTES, "%s", reader->thread);
    reader->rows++;
    reader->no_memory |= timeline_add(reader->import, reader->timeline, texts, where) != 0;
    return reader->no_memory ? -1 : 0;
}

static int fail_json(const struct timeline_json *reader, const char *where, struct error *err)
{
    if (reader->no_memory)
        return error_memory(err, "can't read %s", reader->path);
    return error_set(err, "%s: %s", where, json_error(reader->json));
}

/* One document: objects at its top, in arrays, or in arrays that an object holds. */
static int read_timeline_document(struct timeline_json *reader, struct error *err)
{
    char where[512];
    enum json_token token;
    bool in_array = false;
    while ((token = json_next(reader->json)) != TOKEN_END) {
        snprintf(where, sizeof where, "%s: byte %" PRIu64, reader->path, json_offset(reader->json));
        if (token == TOKEN_ERROR)
            return fail_json(reader, reader->path, err);
        in_array |= token == TOKEN_ARRAY;
        if (token == TOKEN_OBJECT && in_array && take_timeline_row(reader, where))
            return fail_json(reader, reader->path, err);
    }
    return 0;
}

static int read_timeline_line(struct timeline_json *reader, const char *text, size_t bytes,
                              const char *where, struct error *err)
{
    const struct json_options options = {.lenient = true};
    struct timeline_line line = {text, bytes};
    if (json_open(&reader->json, &options, read_line_bytes, &line, err))
        return -1;
    int result = json_next(reader->json) == TOKEN_OBJECT ? take_timeline_row(reader, where) : -1;
    if (result && reader->no_memory)
        fail_json(reader, where, err);
    else if (result)
        import_refuse(reader->import, "%s: no row of a timeline: %s", where,
                      json_error(reader->json)[0] ? json_error(reader->json) : "no JSON object");
    json_close(reader->json);
    return reader->no_memory ? -1 : 0;
}

static int read_timeline_lines(struct timeline_json *reader, struct import_input *input,
                               struct error *err)
{
    char *text, where[512];
    size_t bytes;
    while ((text = input_line(input, &bytes, err))) {
        size_t space = strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3;
        space += strspn(text + space, " \t\r");
        if (!text[space])
            continue;
        snprintf(where, sizeof where, "%s: line %" PRIu64, reader->path, input_line_number(input));
        if (read_timeline_line(reader, text + space, bytes - space, where, err))
            return -1;
    }
    return err->text[0] ? -1 : 0;
}

/* Whether the first line is an object by itself. */
static bool has_lines(const struct import_head *head)
{
    const char *text = head->bytes, *end = strchr(text, '\n');
    text += strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3;
    text += strspn(text, " \t\r\n");
    end = strchr(text, '\n');
    if (*text != '{')
        return false;
    if (!end)
        return !strstr(text, "\"traceEvents\"");
    while (end > text && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    return end > text && end[-1] == '}';
}

int timeline_read_json(struct import *import, struct foreign_timeline *timeline,
                       struct import_input *input, struct error *err)
{
    const struct json_options options = {.lenient = true};
    struct timeline_json *reader = calloc(1, sizeof *reader);
    struct import_head head;
    if (!reader)
        return error_memory(err, "can't read %s", input_path(input));
    reader->import = import;
    reader->timeline = timeline;
    reader->path = input_path(input);
    input_head(input, &head);
    int result = -1;
    if (has_lines(&head)) {
        result = read_timeline_lines(reader, input, err);
    } else if (!json_open(&reader->json, &options, read_file_bytes, input, err)) {
        result = read_timeline_document(reader, err);
        json_close(reader->json);
    }
    if (!result && !reader->rows)
        result = error_set(err, "%s: there is no row of a timeline in it", reader->path);
    free(reader);
    return result;
}
