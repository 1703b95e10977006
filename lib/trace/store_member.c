/* store_member.c: the tables member_state, wait_state and speed_state. */
#include "lib/trace/store_internal.h"

static int store_label(struct store *store, const struct member_state *member, struct error *err)
{
    if (!*member->label)
        return 0;
    sqlite3_stmt *statement = store_prepare(store, STORE_LABEL, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)member->comm);
    sqlite3_bind_text(statement, 2, member->label, -1, SQLITE_STATIC);
    return store_run(store, statement, err);
}

int store_member(struct store *store, const struct member_state *member, uint64_t updated_ns,
                 struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_MEMBER, err);
    if (!statement)
        return -1;
    const sqlite3_int64 numbers[] = {
        (sqlite3_int64)member->comm,
        member->rank,
        member->shown_rank,
        member->nranks,
        member->process,
        member->device,
        (sqlite3_int64)member->issued,
        (sqlite3_int64)member->started,
        (sqlite3_int64)member->done,
        (sqlite3_int64)member->p2p,
        member->destroyed,
        member->ended,
    };
    const char *const texts[] = {member->where, member->phase, member->last_call};
    const sqlite3_int64 last[] = {(sqlite3_int64)member->stack, member->stack_is_address,
                                  (sqlite3_int64)member->since_ns, (sqlite3_int64)updated_ns};
    int column = 1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(statement, column++, numbers[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sqlite3_bind_text(statement, column++, texts[i], -1, SQLITE_STATIC);
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        sqlite3_bind_int64(statement, column++, last[i]);
    return store_run(store, statement, err) < 0 ? -1 : store_label(store, member, err);
}

static int remove_state(struct store *store, int which, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, which, err);
    return statement ? store_run(store, statement, err) : -1;
}

int store_wait(struct store *store, const struct store_wait *wait, struct error *err)
{
    if ((!wait || wait->id == 0) && remove_state(store, STORE_WAITS_REMOVE, err) < 0)
        return -1;
    sqlite3_stmt *statement = wait ? store_prepare(store, STORE_WAIT, err) : NULL;
    if (!statement)
        return wait ? -1 : 0;
    sqlite3_bind_int(statement, 1, wait->id);
    sqlite3_bind_int(statement, 2, wait->depth);
    sqlite3_bind_text(statement, 3, wait->text, -1, SQLITE_STATIC);
    const sqlite3_int64 numbers[] = {wait->process,
                                     wait->shown_rank,
                                     wait->in_cycle,
                                     wait->stuck,
                                     wait->again,
                                     (sqlite3_int64)wait->since_ns,
                                     (sqlite3_int64)wait->stack,
                                     wait->stack_is_address};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(statement, 4 + (int)i, numbers[i]);
    return store_run(store, statement, err);
}

int store_speed(struct store *store, const struct store_speed *speed, struct error *err)
{
    if (speed->id == 0 && remove_state(store, STORE_SPEED_REMOVE, err) < 0)
        return -1;
    sqlite3_stmt *statement = store_prepare(store, STORE_SPEED, err);
    if (!statement)
        return -1;
    const sqlite3_int64 numbers[] = {
        speed->id,
        speed->shown_rank,
        speed->process,
        (sqlite3_int64)speed->comm,
        speed->lag_ns,
        speed->wait_ns,
        speed->length_ns,
        (sqlite3_int64)speed->since,
        (sqlite3_int64)speed->period,
        (sqlite3_int64)speed->first,
        (sqlite3_int64)speed->last,
        speed->coarse,
    };
    const char *const texts[] = {speed->kind, speed->code, speed->trend};
    int column = 1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(statement, column++, numbers[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sqlite3_bind_text(statement, column++, texts[i], -1, SQLITE_STATIC);
    return store_run(store, statement, err);
}
