/* timeline.c: reads timelines of others: a row for each operation of each rank, as CSV or JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/input.h"
#include "lib/import/timeline.h"

enum { COLUMNS_MAX = 256 };

struct timeline_columns {
    enum timeline_field field[COLUMNS_MAX]; /* of each column */
    int count;
    char separator;
};

/* The next field of a line, its quotes taken off in place. Moves *at behind its separator; NULL
 * behind the last. */
static char *next_csv_field(char **at, char separator)
{
    char *text = *at, *to = text, *from = text + strspn(text, " ");
    bool quoted = *from == '"';
    if (quoted)
        from++;
    while (*from && (quoted || *from != separator)) {
        if (quoted && *from == '"' && *++from != '"') {
            quoted = false;
            continue;
        }
        *to++ = *from++;
    }
    *at = *from ? from + 1 : NULL;
    while (to > text && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    *to = '\0';
    return text;
}

static char find_separator(const char *header)
{
    static const char separators[] = ",;\t";
    char best = ',';
    size_t most = 0;
    for (const char *separator = separators; *separator; separator++) {
        size_t count = 0;
        for (const char *at = header; *at; at++)
            count += *at == *separator;
        if (count > most) {
            most = count;
            best = *separator;
        }
    }
    return best;
}

static bool columns_have(const struct timeline_columns *columns, enum timeline_field field)
{
    for (int i = 0; i < columns->count; i++)
        if (columns->field[i] == field)
            return true;
    return false;
}

static bool columns_are_enough(const struct timeline_columns *columns)
{
    return columns_have(columns, FIELD_RANK) && columns_have(columns, FIELD_OPERATION) &&
           columns_have(columns, FIELD_START) &&
           (columns_have(columns, FIELD_DURATION) || columns_have(columns, FIELD_END));
}

/* The first of two columns of one meaning counts. */
static void read_header(char *line, struct timeline_columns *columns, struct timeline_texts *texts)
{
    if (!strncmp(line, "\xef\xbb\xbf", 3))
        line += 3;
    line += *line == '#';
    columns->separator = find_separator(line);
    columns->count = 0;
    for (char *at = line; at && columns->count < COLUMNS_MAX;) {
        int digits;
        const char *name = next_csv_field(&at, columns->separator);
        enum timeline_field field = timeline_field_find(name, strlen(name), &digits);
        if (field != FIELD_NONE && columns_have(columns, field))
            field = FIELD_NONE;
        if (field != FIELD_NONE)
            texts->digits[field] = digits;
        columns->field[columns->count++] = field;
    }
}

static void read_csv_row(char *line, const struct timeline_columns *columns,
                         struct timeline_texts *texts)
{
    for (int field = 0; field < FIELDS; field++)
        texts->text[field][0] = '\0';
    char *at = line;
    for (int i = 0; at && i < columns->count; i++) {
        const char *text = next_csv_field(&at, columns->separator);
        if (columns->field[i] != FIELD_NONE)
            snprintf(texts->text[columns->field[i]], TIMELINE_FIELD_BYTES, "%s", text);
    }
}

static int read_csv(struct import *import, struct foreign_timeline *timeline,
                    struct import_input *input, struct timeline_texts *texts, struct error *err)
{
    struct timeline_columns columns = {.count = 0};
    char *line, where[512];
    size_t bytes;
    while ((line = input_line(input, &bytes, err))) {
        if (!line[strspn(line, " \t\r")])
            continue;
        if (!columns.count) {
            read_header(line, &columns, texts);
            if (!columns_are_enough(&columns))
                return error_set(err,
                                 "%s: line %" PRIu64 ": no header with rank, operation, start and "
                                 "duration; docs/import.md says what a timeline is",
                                 input_path(input), input_line_number(input));
            continue;
        }
        read_csv_row(line, &columns, texts);
        snprintf(where, sizeof where, "%s: line %" PRIu64, input_path(input),
                 input_line_number(input));
        if (timeline_add(import, timeline, texts, where))
            return error_memory(err, "can't read %s", input_path(input));
    }
    return err->text[0] ? -1 : 0;
}

static bool is_json(const char *text)
{
    if (!strncmp(text, "\xef\xbb\xbf", 3))
        text += 3;
    text += strspn(text, " \t\r\n");
    return *text == '{' || *text == '[';
}

static int read_timeline(struct import *import, struct import_input *input, struct error *err)
{
    struct foreign_timeline *timeline = timeline_of(import);
    struct timeline_texts *texts = calloc(1, sizeof *texts);
    struct import_head head;
    if (!timeline || !texts) {
        free(texts);
        return error_memory(err, "can't read %s", input_path(input));
    }
    if (!timeline->file)
        timeline->file = strdup(input_path(input));
    if (timeline->newest_ns < (int64_t)input_modified_ns(input))
        timeline->newest_ns = (int64_t)input_modified_ns(input);
    input_head(input, &head);
    int result = is_json(head.bytes) ? timeline_read_json(import, timeline, input, err)
                                     : read_csv(import, timeline, input, texts, err);
    free(texts);
    return result;
}

static int end_timeline(struct import *import)
{
    struct foreign_timeline *timeline = *import_state(import);
    if (!timeline)
        return 0;
    int result = timeline_emit(import, timeline);
    struct timeline_names *const all[] = {&timeline->groups, &timeline->operations,
                                          &timeline->hosts};
    for (int i = 0; i < 3; i++) {
        struct timeline_name *name, *next;
        HASH_ITER(hh, all[i]->table, name, next) {
            HASH_DEL(all[i]->table, name);
            free(name->text);
            free(name);
        }
        free(all[i]->by_index);
    }
    free(timeline->row);
    free(timeline->file);
    free(timeline);
    *import_state(import) = NULL;
    return result;
}

static bool has_any(const char *text, const char *const *words)
{
    while (*words && !strstr(text, *words))
        words++;
    return *words != NULL;
}

/* Chrome's events are Kineto's form as well; a row of a timeline names its group. */
static int sniff_json(const char *text)
{
    static const char *const others[] = {"\"record_param_comms\"", "\"distributedInfo\"",
                                         "\"schemaVersion\"", "\"coll_perf\"", NULL};
    bool row = strstr(text, "\"rank\"") && strstr(text, "\"start") && strstr(text, "\"duration");
    bool event = strstr(text, "\"ph\"") && strstr(text, "\"ts\"") && strstr(text, "\"dur\"");
    return strstr(text, "\"group\"") && (row || event) && !has_any(text, others) ? 90 : 0;
}

static int sniff_timeline(const struct import_head *head)
{
    if (is_json(head->bytes))
        return sniff_json(head->bytes);
    struct timeline_columns columns = {.count = 0};
    struct timeline_texts *texts = calloc(1, sizeof *texts);
    char *header = strndup(head->bytes, strcspn(head->bytes, "\n"));
    if (header && texts)
        read_header(header, &columns, texts);
    free(header);
    free(texts);
    return columns.count && columns_are_enough(&columns) ? 95 : 0;
}

const struct import_source import_source_timeline = {
    .name = "timeline",
    .title = "timeline of operations",
    .lacks = LACKS_ROOT | LACKS_REDOP | LACKS_ADDRESSES | LACKS_STREAM | LACKS_GROUP | LACKS_STACK |
             LACKS_CUDA | LACKS_START | LACKS_COUNT | LACKS_DATATYPE | LACKS_SETUP | LACKS_MARKS |
             LACKS_PAYLOAD | LACKS_END | LACKS_UNFINISHED | LACKS_DEVICE,
    .sniff = sniff_timeline,
    .read = read_timeline,
    .end = end_timeline,
};
