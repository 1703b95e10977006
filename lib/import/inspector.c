/* inspector.c: reads NCCL Inspector's logs (NCCL's plugins/profiler/inspector): a JSON object in
 * each line, one for each operation that finished.
 *
 * A collective's coll_sn counts the calls of its kind on its communicator (NCCL's
 * src/plugin/profiler.cc: seqNumber[func]), so each kind is a sequence of its own here: its
 * communicator's id differs from NCCL's in the last byte. Small operations (8 KiB by default) are
 * left out, and older versions write only the last of each interval: numbers have gaps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/array.h"
#include "lib/import/import.h"
#include "lib/import/ras_status.h"
#include "lib/import/time_heap.h"
#include "lib/trace/kinds.h"

enum {
    RECORD_MAX_BYTES = 1 << 20,
    CALLS_KEPT = 4096 /* more than are at once on a GPU, or finished in between two writes */
};

static const uint64_t microsecond_ns = 1000;

/* Lines come as operations end; they are imported as these begin. */
struct inspected_call {
    struct timed begun;
    int process, rank, nranks;
    uint64_t comm, number, took_ns;
    uint16_t api;
};

struct inspector_reader {
    struct import *import;
    struct import_input *input;
    struct error *err;
    struct time_heap calls;
    uint64_t line; /* where the record in hand begins */
    uint64_t lines, damaged,
        unknown; /* unknown: kinds of operations that NCCL did not have when this was written */
    struct error first; /* what is wrong with the first that is damaged */
};

static bool get_integer(const json_t *object, const char *key, int64_t *value)
{
    const json_t *number = json_object_get(object, key);
    *value = json_integer_value(number);
    return json_is_integer(number);
}

static uint16_t find_collective_api(const char *name)
{
    uint16_t api = name ? kind_of_nccl(name, strlen(name)) : API_NONE;
    return kind_has(api, KIND_TO_PEER) ? API_NONE : api;
}

static int get_inspected_process(struct inspector_reader *reader, const json_t *line, int64_t rank)
{
    const json_t *metadata = json_object_get(line, "metadata");
    struct import_process process = import_process_new();
    int64_t pid;
    process.host = json_string_value(json_object_get(metadata, "hostname"));
    if (get_integer(metadata, "pid", &pid) && pid > 0 && pid <= INT32_MAX)
        process.pid = (int)pid;
    else
        process.rank = (int)rank;
    return import_process(reader->import, &process);
}

static int import_inspected_call(struct import *import, const struct inspected_call *inspected)
{
    struct import_member member = import_member_new();
    member.rank = inspected->rank;
    member.nranks = inspected->nranks;
    member.comm_id = inspected->comm ^ inspected->api;
    member.time_ns = inspected->begun.time_ns;
    int index = import_member(import, inspected->process, &member);
    if (index < 0)
        return -1;
    struct import_call call = import_call_new(index, inspected->api);
    call.number = inspected->number;
    call.state = IMPORT_DONE;
    call.time_ns = inspected->begun.time_ns;
    return import_lasting_call(import, &call,
                               (struct import_lasting){.duration_ns = inspected->took_ns});
}

/* Imports the calls that began first, until `left` of them remain. */
static int import_earliest(struct inspector_reader *reader, size_t left)
{
    int result = 0;
    while (!result && reader->calls.count > left) {
        struct inspected_call inspected;
        time_heap_take(&reader->calls, &inspected);
        result = import_inspected_call(reader->import, &inspected);
    }
    return result;
}

/* A collective that finished at the time at which the line was written, or a little before. */
static int keep_inspected(struct inspector_reader *reader, struct inspected_call *inspected,
                          const json_t *perf, uint64_t written_ns)
{
    int64_t number, took_us = 0;
    inspected->api = find_collective_api(json_string_value(json_object_get(perf, "coll")));
    if (!inspected->api || !get_integer(perf, "coll_sn", &number) || number < 0) {
        reader->unknown++;
        return 0;
    }
    get_integer(perf, "coll_exec_time_us", &took_us);
    inspected->number = (uint64_t)number;
    inspected->took_ns = took_us > 0 ? (uint64_t)took_us * microsecond_ns : 0;
    inspected->begun.time_ns = written_ns > inspected->took_ns ? written_ns - inspected->took_ns
                                                               : written_ns;
    if (time_heap_put(&reader->calls, inspected))
        return error_set(reader->err, OUT_OF_MEMORY);
    return import_earliest(reader, CALLS_KEPT);
}

static int import_inspected(struct inspector_reader *reader, const json_t *line)
{
    const json_t *header = json_object_get(line, "header"),
                 *perf = json_object_get(line, "coll_perf");
    const char *id = json_string_value(json_object_get(header, "id"));
    int64_t rank, nranks, written_us = 0;
    if (!id || !get_integer(header, "rank", &rank) || rank < 0 || rank > INT32_MAX)
        return 1;
    if (!perf) /* p2p_perf: it names the peer, not which of the messages to it; dump_stats */
        return 0;
    struct inspected_call inspected = {
        .rank = (int)rank, .nranks = -1, .comm = strtoull(id, NULL, 16)};
    if (get_integer(header, "n_ranks", &nranks) && nranks > rank && nranks <= INT32_MAX)
        inspected.nranks = (int)nranks;
    get_integer(json_object_get(line, "metadata"), "dump_timestamp_us", &written_us);
    uint64_t written_ns = written_us > 0 ? (uint64_t)written_us * microsecond_ns : 0;
    inspected.process = get_inspected_process(reader, line, rank);
    if (inspected.process < 0)
        return -1;
    import_process_rank_of(reader->import, inspected.process, (int)rank, inspected.nranks);
    return keep_inspected(reader, &inspected, perf, written_ns);
}

static int parse_inspected_line(struct inspector_reader *reader, const char *text, size_t bytes)
{
    json_error_t wrong;
    json_t *line = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &wrong);
    int result = line ? import_inspected(reader, line) : 1;
    if (result > 0 && !reader->damaged++)
        error_set(&reader->first, "line %llu: %s", (unsigned long long)reader->line,
                  line ? "no \"header\" with \"id\" and \"rank\"" : wrong.text);
    json_decref(line);
    return result < 0 ? -1 : 0;
}

/* --- records that were laid out over several lines, or put into a list --- */

struct inspector_record {
    char *text;
    size_t bytes, capacity;
    int depth; /* open braces */
    bool in_text, escaped;
};

/* Follows the record through a line. Returns where it ends, or -1: it goes on. */
static long follow_record(struct inspector_record *record, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (record->escaped)
            record->escaped = false;
        else if (record->in_text && c == '\\')
            record->escaped = true;
        else if (c == '"')
            record->in_text = !record->in_text;
        else if (!record->in_text && c == '{')
            record->depth++;
        else if (!record->in_text && c == '}' && --record->depth == 0)
            return (long)i + 1;
    }
    return -1;
}

static int append_record(struct inspector_record *record, const char *text, size_t bytes)
{
    if (!ARRAY_RESERVE(record->text, record->capacity, record->bytes + bytes + 1))
        return -1;
    memcpy(record->text + record->bytes, text, bytes);
    record->bytes += bytes;
    record->text[record->bytes++] = '\n';
    return 0;
}

static void drop_record(struct inspector_record *record)
{
    record->bytes = 0;
    record->depth = 0;
    record->in_text = record->escaped = false;
}

/* A record that is open ends where the next one begins, or when it is too long: it was cut. */
static int take_inspector_line(struct inspector_reader *reader, struct inspector_record *record,
                               const char *text, size_t bytes)
{
    int result = 0;
    bool begins = *text == '{' && (bytes == 1 || !strncmp(text, "{\"header\"", 9));
    if (record->bytes && (begins || record->bytes > RECORD_MAX_BYTES)) {
        result = parse_inspected_line(reader, record->text, record->bytes);
        drop_record(record);
    }
    if (!record->bytes)
        reader->line = input_line_number(reader->input);
    while (!result && bytes) {
        size_t between = record->bytes ? 0 : strspn(text, "[], \t\r");
        text += between;
        bytes -= between;
        long end = bytes ? follow_record(record, text, bytes) : -1;
        bool alone = bytes && !record->bytes && record->depth <= 0 && end < 0;
        size_t taken = end < 0 ? bytes : (size_t)end;
        if (alone || (end >= 0 && !record->bytes)) /* a whole one, or none at all */
            result = parse_inspected_line(reader, text, taken);
        else if (bytes)
            result = append_record(record, text, taken);
        if (end >= 0 && record->bytes && !result)
            result = parse_inspected_line(reader, record->text, record->bytes);
        if (end >= 0 || alone)
            drop_record(record);
        text += taken;
        bytes -= taken;
    }
    return result;
}

static int read_inspector(struct import *import, struct import_input *input, struct error *err)
{
    struct inspector_reader reader = {.import = import,
                                      .input = input,
                                      .err = err,
                                      .calls.item_bytes = sizeof(struct inspected_call)};
    struct inspector_record record = {0};
    size_t bytes;
    int result = 0;
    for (char *text; !result && (text = input_line(input, &bytes, err));)
        result = take_inspector_line(&reader, &record, text, bytes);
    if (!result && record.bytes)
        result = parse_inspected_line(&reader, record.text, record.bytes);
    if (!result)
        result = import_earliest(&reader, 0);
    time_heap_free(&reader.calls);
    free(record.text);
    if (reader.damaged)
        import_refuse(import, "%s: %llu lines could not be read, the first: %s", input_path(input),
                      (unsigned long long)reader.damaged, reader.first.text);
    if (reader.unknown)
        import_refuse(
            import,
            "%s: %llu operations of a kind that ddpcheck does not know, or without a number",
            input_path(input), (unsigned long long)reader.unknown);
    return result || err->text[0] ? -1 : 0;
}

static int sniff_inspector(const struct import_head *head)
{
    const char *text = head->bytes + strspn(head->bytes, " \t\r\n");
    if (*text == '[')
        text += 1 + strspn(text + 1, " \t\r\n");
    if (*text != '{')
        return 0;
    return strstr(text, "\"inspector_output_format_version\"") ||
                   (strstr(text, "\"header\"") && strstr(text, "\"coll_perf\""))
               ? 100
               : 0;
}

const struct import_source import_source_inspector = {
    .name = "inspector",
    .title = "NCCL Inspector log",
    .lacks = LACKS_COUNT | LACKS_DATATYPE | LACKS_REDOP | LACKS_ROOT | LACKS_ADDRESSES |
             LACKS_STREAM | LACKS_GROUP | LACKS_STACK | LACKS_CUDA | LACKS_START | LACKS_P2P |
             LACKS_SETUP | LACKS_MARKS | LACKS_PAYLOAD | LACKS_END | LACKS_UNFINISHED |
             LACKS_STARTS,
    .sniff = sniff_inspector,
    .read = read_inspector,
};
