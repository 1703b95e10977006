/* trace_dropped.c: what --keep dropped of a database: its readers get a notice before all else. */
#include <stdlib.h>

#include "lib/base/array.h"
#include "lib/trace/trace.h"
#include "lib/trace/trace_source.h"

static struct source_dropped *dropped_of(struct trace_source *source, int process)
{
    for (int i = 0; i < source->dropped_count; i++)
        if (source->dropped[i].process == process)
            return &source->dropped[i];
    if (!ARRAY_ADD(source->dropped, source->dropped_count))
        return NULL;
    source->dropped[source->dropped_count] = (struct source_dropped){.process = process};
    return &source->dropped[source->dropped_count++];
}

int source_read_dropped(struct trace_source *source, struct error *err)
{
    sqlite3_stmt *rows = NULL;
    int code, result = 0;
    if (source->damaged || source->cut_at)
        return 0;
    if (sqlite3_prepare_v2(
            source->db,
            "SELECT process, sum(records), max(last_ns), sum(records * (what = 'calls')) "
            "FROM dropped GROUP BY process",
            -1, &rows, NULL) != SQLITE_OK)
        return source_failed(source, "read", err);
    while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
        struct source_dropped *dropped = dropped_of(source, sqlite3_column_int(rows, 0));
        if (!dropped) {
            result = error_memory(err, "can't read %s", source->path);
            break;
        }
        uint64_t records = (uint64_t)sqlite3_column_int64(rows, 1);
        dropped->is_new = dropped->is_new || records != dropped->records;
        dropped->records = records;
        dropped->last_ns = (uint64_t)sqlite3_column_int64(rows, 2);
        dropped->calls = (uint64_t)sqlite3_column_int64(rows, 3);
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = source_failed(source, "read", err);
    sqlite3_finalize(rows);
    return result;
}

int source_fetch_dropped(struct trace_source *source)
{
    for (int i = 0; i < source->dropped_count; i++) {
        struct source_dropped *dropped = &source->dropped[i];
        if (!dropped->is_new || dropped->process < 0 || dropped->process >= source->process_count)
            continue;
        dropped->is_new = false;
        source->head_process = dropped->process;
        source->head = (struct record){.api = API_notice_dropped, .device = RECORD_NO_DEVICE};
        source->head.dropped.bulk = dropped->records - dropped->calls;
        source->head.dropped.calls = dropped->calls;
        source->head.dropped.last_ns = dropped->last_ns;
        return 1;
    }
    return 0;
}

uint64_t source_count_dropped(const struct trace_source *source)
{
    uint64_t records = 0;
    for (int i = 0; i < source->dropped_count; i++)
        records += source->dropped[i].records;
    return records;
}

struct trace_dropped trace_dropped(struct trace *trace)
{
    struct trace_dropped dropped = {0};
    for (int i = 0; i < trace_database_count(trace); i++) {
        sqlite3_stmt *row = NULL;
        if (sqlite3_prepare_v2(
                trace_database(trace, i),
                "SELECT coalesce(sum(records), 0), coalesce(max(last_ns + realtime_ns - "
                "monotonic_ns), 0), coalesce(sum(records * (what = 'calls')), 0) "
                "FROM dropped JOIN process ON id = process",
                -1, &row, NULL) != SQLITE_OK)
            continue;
        if (sqlite3_step(row) == SQLITE_ROW) {
            uint64_t last_ns = (uint64_t)sqlite3_column_int64(row, 1);
            dropped.records += (uint64_t)sqlite3_column_int64(row, 0);
            dropped.calls += (uint64_t)sqlite3_column_int64(row, 2);
            if (last_ns > dropped.until_ns)
                dropped.until_ns = last_ns;
        }
        sqlite3_finalize(row);
    }
    return dropped;
}
