/* log_records.c: takes the records out of a JSON document. */
#include "lib/import/log_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/moment.h"
#include "lib/import/json_stream.h"
#include "lib/import/log_line.h"
#include "lib/import/log_unwrap.h"

enum { TIME_BYTES = 40, KEY_BYTES = 32 };

struct log_record {
    uint64_t time_ns; /* 0: not known */
    uint64_t array;   /* which one it is in */
    size_t order;     /* in the document */
    char *text;
};

struct log_records {
    struct json_stream *json;
    struct log_record *record;
    size_t count;
    uint64_t arrays;
    bool no_memory;
};

bool log_is_document(const struct import_head *head)
{
    static const char *const lists[] = {"\"streams\"", "\"events\"", "\"hits\"", "\"entries\""};
    const char *text = head->bytes + strspn(head->bytes, " \t\r\n");
    const char *next = text + (*text != '\0');
    next += strspn(next, " \t");
    if (strstr(text, "\"resultType\"") && strstr(text, "\"values\""))
        return true;
    if (!log_unwrap_has_keys(text))
        return false;
    if (*text == '[')
        return next[strspn(next, "\r\n \t")] == '{';
    if (*text != '{')
        return false;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strstr(text, lists[i]))
            return true;
    return *next == '\n' || *next == '\r';
}

static int64_t read_document_bytes(void *context, void *buffer, size_t bytes, struct error *err)
{
    return input_read(context, buffer, bytes, err);
}

/* A time as text, or a number since 1970 whose unit its size shows. 0: it is none. */
static uint64_t record_time(const struct json_stream *json)
{
    size_t bytes;
    const char *text = json_text(json, &bytes);
    int64_t number;
    if (!json_scaled(json, 0, &number) || number <= 0)
        return log_prefix_time(text, bytes);
    uint64_t time_ns = (uint64_t)number;
    while (!moment_known(time_ns) && time_ns < UINT64_MAX / 1000)
        time_ns *= 1000;
    return moment_known(time_ns) ? time_ns : 0;
}

static void keep_record(struct log_records *records, uint64_t time_ns, uint64_t array, char *text)
{
    if (!text || !ARRAY_ADD(records->record, records->count)) {
        records->no_memory = true;
        free(text);
        return;
    }
    records->record[records->count] = (struct log_record){time_ns, array, records->count, text};
    records->count++;
}

static void read_record_value(struct log_records *records, enum json_token token, uint64_t array);

static void read_record_object(struct log_records *records, uint64_t array)
{
    char key[KEY_BYTES], *text = NULL;
    uint64_t time_ns = 0;
    int best = -1; /* the key whose text it is */
    while (json_next(records->json) == TOKEN_KEY) {
        snprintf(key, sizeof key, "%s", json_text(records->json, NULL));
        enum json_token token = json_next(records->json);
        int which = log_unwrap_key(key);
        if (log_unwrap_time_key(key) && token >= TOKEN_STRING && token <= TOKEN_FRACTION) {
            time_ns = time_ns ? time_ns : record_time(records->json);
        } else if (which >= 0 && token == TOKEN_STRING && (best < 0 || which < best)) {
            best = which;
            free(text);
            text = strdup(json_text(records->json, NULL));
            records->no_memory |= !text;
        } else {
            read_record_value(records, token, array);
        }
    }
    if (best >= 0)
        keep_record(records, time_ns, array, text);
}

/* Loki's pair has the time first, then the text, then perhaps an object. */
static void read_record_array(struct log_records *records, uint64_t outer)
{
    uint64_t array = ++records->arrays, time_ns = 0;
    enum json_token token;
    for (size_t at = 0; (token = json_next(records->json)) > TOKEN_END && token != TOKEN_ARRAY_END;
         at++) {
        if (token == TOKEN_STRING && at == 0)
            time_ns = record_time(records->json);
        else if (token == TOKEN_STRING && at == 1 && time_ns)
            keep_record(records, time_ns, outer, strdup(json_text(records->json, NULL)));
        else
            read_record_value(records, token, array);
    }
}

static void read_record_value(struct log_records *records, enum json_token token, uint64_t array)
{
    if (records->no_memory)
        return;
    if (token == TOKEN_OBJECT)
        read_record_object(records, array);
    else if (token == TOKEN_ARRAY)
        read_record_array(records, array);
}

static int compare_records(const void *left, const void *right)
{
    const struct log_record *a = left, *b = right;
    if (a->array != b->array)
        return a->array < b->array ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* Services give the newest first, unless they are asked not to. */
static void order_records(struct log_records *records)
{
    bool is_backward = records->count &&
                       records->record[0].time_ns > records->record[records->count - 1].time_ns;
    for (size_t i = 0; is_backward && i < records->count; i++)
        records->record[i].order = records->count - i;
    if (records->count)
        qsort(records->record, records->count, sizeof *records->record, compare_records);
}

static int give_records(struct log_records *records, log_record_take *take, void *context)
{
    int result = 0;
    for (size_t i = 0; i < records->count && !result; i++) {
        struct log_record *record = &records->record[i];
        char time[TIME_BYTES] = "", *line;
        bool has_own = log_prefix_time(record->text, strlen(record->text)) ||
                       *record->text == '{'; /* one more record inside */
        if (record->time_ns && !has_own)
            moment_iso(record->time_ns, time, sizeof time);
        int bytes = asprintf(&line, "%s%s%s", time, *time ? " " : "", record->text);
        if (bytes < 0)
            return -1;
        result = take(context, line, (size_t)bytes, !i || record[-1].array != record->array);
        free(line);
    }
    return result;
}

int log_records_read(struct import_input *input, log_record_take *take, void *context,
                     struct error *err)
{
    const struct json_options options = {.lenient = true};
    struct log_records records = {0};
    if (json_open(&records.json, &options, read_document_bytes, input, err))
        return -1;
    read_record_value(&records, json_next(records.json), 0);
    order_records(&records);
    int result = records.no_memory ? -1 : give_records(&records, take, context);
    if (!result && *json_error(records.json) && records.count)
        result = error_set(err, "%s", json_error(records.json));
    json_close(records.json);
    for (size_t i = 0; i < records.count; i++)
        free(records.record[i].text);
    free(records.record);
    return result;
}
