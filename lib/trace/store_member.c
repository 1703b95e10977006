/* store_member.c: the table member_state. */
#include "lib/trace/store_internal.h"

int store_member(struct store *store, const struct store_member *member, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_MEMBER, err);
    if (!statement)
        return -1;
    const sqlite3_int64 numbers[] = {
        (sqlite3_int64)member->comm, member->rank, member->shown_rank, member->nranks, member->process, member->device,
        (sqlite3_int64)member->issued, (sqlite3_int64)member->started, (sqlite3_int64)member->done,
        (sqlite3_int64)member->p2p, member->destroyed, member->ended,
    };
    const char *const texts[] = {member->where, member->phase, member->last_call};
    const sqlite3_int64 last[] = {(sqlite3_int64)member->stack, member->stack_is_address, (sqlite3_int64)member->since_ns,
                                  (sqlite3_int64)member->updated_ns};
    int column = 1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(statement, column++, numbers[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sqlite3_bind_text(statement, column++, texts[i], -1, SQLITE_STATIC);
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        sqlite3_bind_int64(statement, column++, last[i]);
    return store_run(store, statement, err);
}
