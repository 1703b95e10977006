/* store_notice.c: what notices say, put together in tables of their own. Each piece is written as
 * it comes, so nothing is kept in memory that a killed collector could lose. */
#include <stdio.h>
#include <string.h>

#include "lib/trace/store_internal.h"

enum {
    STRING_PIECE = sizeof((struct record *)0)->string.text,
    FRAMES_PIECE = 8,
    PYTHON_PIECE = 3,
    FRAMES_MAX = 1024
};

static int store_string(struct store *store, int process, const struct record *record,
                        struct error *err)
{
    uint32_t bytes = record->string.bytes, offset = record->string.offset;
    if (offset > bytes || (offset == bytes && bytes > 0))
        return 0; /* noise; the event keeps it */
    uint32_t piece = bytes - offset < STRING_PIECE ? bytes - offset : STRING_PIECE;
    sqlite3_stmt *statement =
        store_prepare(store, offset ? STORE_STRING_APPEND : STORE_STRING_START, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)record->string.id);
    sqlite3_bind_int64(statement, 3, bytes);
    if (offset) {
        sqlite3_bind_int64(statement, 4, offset);
        sqlite3_bind_blob(statement, 5, record->string.text, (int)piece, SQLITE_STATIC);
    } else {
        sqlite3_bind_text(statement, 4, record->string.text, (int)piece, SQLITE_STATIC);
    }
    return store_run(store, statement, err);
}

static int store_frames(struct store *store, int process, const struct record *record,
                        struct error *err)
{
    for (uint32_t i = 0; i < FRAMES_PIECE; i++) {
        uint64_t depth = (uint64_t)record->frames.offset + i;
        if (depth >= record->frames.count || depth >= FRAMES_MAX)
            break;
        sqlite3_stmt *statement = store_prepare(store, STORE_FRAME, err);
        if (!statement)
            return -1;
        sqlite3_bind_int(statement, 1, process);
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)record->frames.id);
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)depth);
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)record->frames.address[i]);
        if (store_run(store, statement, err) < 0)
            return -1;
    }
    return 0;
}

static int store_python(struct store *store, int process, const struct record *record,
                        struct error *err)
{
    for (int i = 0; i < PYTHON_PIECE; i++) {
        int depth = record->python.offset + i;
        if (depth >= record->python.count || depth >= FRAMES_MAX)
            break;
        sqlite3_stmt *statement = store_prepare(store, STORE_PYTHON, err);
        if (!statement)
            return -1;
        const uint64_t values[] = {record->python.id,      (uint64_t)depth,
                                   record->python.file[i], record->python.function[i],
                                   record->python.line[i], record->python.native};
        sqlite3_bind_int(statement, 1, process);
        for (int column = 0; column < 6; column++)
            sqlite3_bind_int64(statement, 2 + column, (sqlite3_int64)values[column]);
        if (store_run(store, statement, err) < 0)
            return -1;
    }
    return 0;
}

static int store_module(struct store *store, int process, const struct record *record,
                        struct error *err)
{
    char build_id[2 * sizeof record->module.build_id + 1] = "";
    for (uint32_t i = 0; i < record->module.build_id_bytes && i < sizeof record->module.build_id;
         i++)
        snprintf(build_id + 2 * i, 3, "%02x", record->module.build_id[i]);
    sqlite3_stmt *statement = store_prepare(store, STORE_MODULE, err);
    if (!statement)
        return -1;
    const uint64_t values[] = {record->module.base, record->module.start, record->module.end,
                               record->module.path};
    sqlite3_bind_int(statement, 1, process);
    for (int i = 0; i < 4; i++)
        sqlite3_bind_int64(statement, 2 + i, (sqlite3_int64)values[i]);
    sqlite3_bind_text(statement, 6, build_id, -1, SQLITE_STATIC);
    return store_run(store, statement, err);
}

static int store_library(struct store *store, int process, const struct record *record,
                         struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_LIBRARY, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)record->range.text);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)record->range.id);
    return store_run(store, statement, err);
}

static int store_setting(struct store *store, int process, const struct record *record,
                         struct error *err)
{
    static const char *const set_by[] = {
        [SETTING_GIVEN] = "start", [SETTING_PROGRAM] = "program", [SETTING_HOST] = "host"};
    sqlite3_stmt *statement = store_prepare(store, STORE_SETTING, err);
    if (!statement)
        return -1;
    if (record->range.id >= sizeof set_by / sizeof *set_by)
        return 0; /* of a later version */
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)record->range.domain);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)record->range.text);
    sqlite3_bind_text(statement, 4, set_by[record->range.id], -1, SQLITE_STATIC);
    return store_run(store, statement, err);
}

static int store_lost(struct store *store, int process, const struct record *record,
                      struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_LOST, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)record->lost.control);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)record->lost.bulk);
    return store_run(store, statement, err);
}

static int store_end(struct store *store, int process, const struct record *record,
                     struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_END, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, record->end.how);
    sqlite3_bind_int(statement, 3, record->end.value);
    sqlite3_bind_int64(statement, 4, (sqlite3_int64)record->end.oom);
    sqlite3_bind_int64(statement, 5, (sqlite3_int64)record->time_ns);
    return store_run(store, statement, err);
}

int store_notice(struct store *store, int process, const struct record *record, struct error *err)
{
    switch (record->api) {
    case API_notice_string:
        return store_string(store, process, record, err);
    case API_notice_stack:
        return store_frames(store, process, record, err);
    case API_notice_python_stack:
        return store_python(store, process, record, err);
    case API_notice_module:
        return store_module(store, process, record, err);
    case API_notice_library:
        return store_library(store, process, record, err);
    case API_notice_setting:
        return store_setting(store, process, record, err);
    case API_notice_lost:
        return store_lost(store, process, record, err);
    case API_notice_end:
        return store_end(store, process, record, err);
    }
    return 0;
}

int store_inlined(struct store *store, int process, uint64_t address, int depth,
                  const char *function, const char *file, int line, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_INLINED, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)address);
    sqlite3_bind_int(statement, 3, depth);
    sqlite3_bind_text(statement, 4, function, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 5, file, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 6, line);
    return store_run(store, statement, err);
}

int store_symbol(struct store *store, int process, uint64_t address, const char *module,
                 const char *function, const char *file, int line, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_SYMBOL, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)address);
    sqlite3_bind_text(statement, 3, module ? module : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, function ? function : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 5, file, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 6, line);
    return store_run(store, statement, err);
}
