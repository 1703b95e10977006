/* store_events.c: writes records as rows of `event`. One INSERT ... SELECT takes a whole batch from
 * a virtual table that reads it where it lies: a statement for each row would take half as long
 * again. */
#include <string.h>

#include "lib/trace/names.h"
#include "lib/trace/store_internal.h"

#define COLUMNS                                                                            \
    "process, time_ns, serial, api, phase, flags, thread, result, device, stack, stream, " \
    "w0, w1, w2, w3, w4, w5, w6, w7, w8, w9"

enum {
    COLUMN_WORD = 11,
    COLUMN_COUNT = COLUMN_WORD + sizeof((struct record *)0)->word / sizeof(uint64_t)
};

const char store_insert_events[] = "INSERT INTO event(" COLUMNS ") SELECT " COLUMNS
                                   " FROM ddpcheck_incoming";

struct incoming_table {
    sqlite3_vtab base;
    const struct store *store;
};

struct incoming_cursor {
    sqlite3_vtab_cursor base;
    int row;
    sqlite3_int64 value[COLUMN_COUNT];
};

static const struct store_incoming *incoming_of(sqlite3_vtab_cursor *cursor)
{
    return &((struct incoming_table *)cursor->pVtab)->store->incoming;
}

static int incoming_connect(sqlite3 *db, void *store, int count, const char *const *arguments,
                            sqlite3_vtab **result, char **message)
{
    (void)count, (void)arguments, (void)message;
    struct incoming_table *table = sqlite3_malloc(sizeof *table);
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct incoming_table){.store = store};
    *result = &table->base;
    return sqlite3_declare_vtab(db, "CREATE TABLE incoming(" COLUMNS ")");
}

static int incoming_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

static int incoming_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 1;
    return SQLITE_OK;
}

static int incoming_open(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    (void)table;
    struct incoming_cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct incoming_cursor){.row = 0};
    *result = &cursor->base;
    return SQLITE_OK;
}

static int incoming_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static void read_incoming(struct incoming_cursor *cursor)
{
    const struct store_incoming *incoming = incoming_of(&cursor->base);
    if (cursor->row >= incoming->count)
        return;
    const struct record *record = &incoming->record[cursor->row];
    const sqlite3_int64 head[COLUMN_WORD] = {incoming->process[cursor->row],
                                             (sqlite3_int64)record->time_ns,
                                             (sqlite3_int64)record->serial,
                                             record->api,
                                             record->phase,
                                             record->flags,
                                             record->thread,
                                             record->result,
                                             record->device,
                                             (sqlite3_int64)record->stack,
                                             (sqlite3_int64)record->stream};
    memcpy(cursor->value, head, sizeof head);
    memcpy(cursor->value + COLUMN_WORD, record->word, sizeof record->word);
}

static int incoming_filter(sqlite3_vtab_cursor *cursor, int index, const char *name, int count,
                           sqlite3_value **arguments)
{
    (void)index, (void)name, (void)count, (void)arguments;
    ((struct incoming_cursor *)cursor)->row = 0;
    read_incoming((struct incoming_cursor *)cursor);
    return SQLITE_OK;
}

static int incoming_next(sqlite3_vtab_cursor *cursor)
{
    ((struct incoming_cursor *)cursor)->row++;
    read_incoming((struct incoming_cursor *)cursor);
    return SQLITE_OK;
}

static int incoming_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct incoming_cursor *)cursor)->row >= incoming_of(cursor)->count;
}

static int incoming_column(sqlite3_vtab_cursor *cursor, sqlite3_context *result, int column)
{
    sqlite3_result_int64(result, ((struct incoming_cursor *)cursor)->value[column]);
    return SQLITE_OK;
}

static int incoming_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    *rowid = ((struct incoming_cursor *)cursor)->row;
    return SQLITE_OK;
}

/* Without xCreate there is one such table in each database, and none in the file. */
static const sqlite3_module incoming_module = {
    .xConnect = incoming_connect,
    .xBestIndex = incoming_plan,
    .xDisconnect = incoming_disconnect,
    .xOpen = incoming_open,
    .xClose = incoming_close,
    .xFilter = incoming_filter,
    .xNext = incoming_next,
    .xEof = incoming_eof,
    .xColumn = incoming_column,
    .xRowid = incoming_rowid,
};

int store_events_begin(struct store *store, struct error *err)
{
    return sqlite3_create_module(store->db, "ddpcheck_incoming", &incoming_module, store) ==
                   SQLITE_OK
               ? 0
               : store_failed(store, err);
}

/* What other tables keep of a record. */
static int note_in_tables(struct store *store, int process, const struct record *record,
                          sqlite3_int64 seq, struct error *err)
{
    enum api_class class = api_class_of(record->api);
    if (class == CLASS_COLLECTIVE && record->phase == RECORD_ENTER)
        return store_block_note(store, process, record, seq, err);
    return class == CLASS_NOTICE ? store_notice(store, process, record, err) : 0;
}

int store_events(struct store *store, const int *process, const struct record *record, int count,
                 struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_EVENTS, err);
    if (!statement)
        return -1;
    store->incoming = (struct store_incoming){process, record, count};
    int result = store_run(store, statement, err);
    store->incoming = (struct store_incoming){NULL, NULL, 0};
    if (result < 0)
        return -1;
    sqlite3_int64 first = sqlite3_last_insert_rowid(store->db) - count + 1;
    for (int i = 0; i < count; i++)
        if (note_in_tables(store, process[i], &record[i], first + i, err) < 0)
            return -1;
    return 0;
}

int store_event(struct store *store, int process, const struct record *record, struct error *err)
{
    return store_events(store, &process, record, 1, err);
}

/* --- how far the rings are stored --- */

int store_position_set(struct store *store, int process, unsigned ring, uint64_t position,
                       struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_POSITION_SET, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, ring);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)position);
    return store_run(store, statement, err);
}

int store_position_get(struct store *store, int process, unsigned ring, uint64_t *position,
                       struct error *err)
{
    *position = 0;
    sqlite3_stmt *statement = store_prepare(store, STORE_POSITION_GET, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_int64(statement, 2, ring);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *position = (uint64_t)sqlite3_column_int64(statement, 0);
    int result = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_failed(store, err);
    sqlite3_reset(statement);
    return result;
}
