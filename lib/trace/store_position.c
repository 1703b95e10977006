/* store_position.c: the table ring_position. */
#include "lib/trace/store_internal.h"

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
