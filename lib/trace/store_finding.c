/* store_finding.c: the tables finding, finding_side, finding_act and finding_call. */
#include "lib/trace/store_internal.h"

/* The side that an act belongs to. */
struct act_key {
    uint32_t finding;
    int side;
};

static void bind_act_key(sqlite3_stmt *statement, const struct act_key *key, const char *moment)
{
    sqlite3_bind_int64(statement, 1, key->finding);
    sqlite3_bind_int(statement, 2, key->side);
    sqlite3_bind_text(statement, 3, moment, -1, SQLITE_STATIC);
}

static int store_title(struct store *store, const struct store_call *call, struct error *err)
{
    if (!call->title || !*call->title)
        return 0;
    sqlite3_stmt *statement = store_prepare(store, STORE_TITLE, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)call->comm);
    sqlite3_bind_text(statement, 2, call->title, -1, SQLITE_STATIC);
    return store_run(store, statement, err);
}

static int store_call(struct store *store, const struct act_key *key, const char *moment,
                      const struct store_call *call, struct error *err)
{
    const struct called *called = &call->called;
    sqlite3_stmt *statement = store_prepare(store, STORE_CALL, err);
    if (!statement)
        return -1;
    const sqlite3_int64 numbers[] = {(sqlite3_int64)call->comm,
                                     (sqlite3_int64)call->number,
                                     called->api,
                                     called->arguments,
                                     called->datatype,
                                     called->redop,
                                     called->peer,
                                     called->size,
                                     (sqlite3_int64)called->count,
                                     (sqlite3_int64)called->bytes};
    bind_act_key(statement, key, moment);
    sqlite3_bind_text(statement, 4, call->role, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 5, call->kind, -1, SQLITE_STATIC);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(statement, 6 + (int)i, numbers[i]);
    return store_run(store, statement, err) < 0 ? -1 : store_title(store, call, err);
}

static int store_act(struct store *store, const struct act_key *key, const char *moment,
                     const struct store_act *act, struct error *err)
{
    if (!act->did)
        return 0;
    sqlite3_stmt *statement = store_prepare(store, STORE_ACT, err);
    if (!statement)
        return -1;
    bind_act_key(statement, key, moment);
    sqlite3_bind_text(statement, 4, act->did, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 5, act->value);
    sqlite3_bind_int(statement, 6, act->rank);
    sqlite3_bind_int64(statement, 7, (sqlite3_int64)act->number);
    sqlite3_bind_text(statement, 8, act->name ? act->name : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 9, act->phase ? act->phase : "", -1, SQLITE_STATIC);
    if (store_run(store, statement, err) < 0)
        return -1;
    for (int i = 0; i < act->calls; i++)
        if (store_call(store, key, moment, &act->call[i], err) < 0)
            return -1;
    return 0;
}

static int remove_of_finding(struct store *store, enum store_statement what, uint32_t finding,
                             struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, what, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, finding);
    return store_run(store, statement, err);
}

static int store_side(struct store *store, uint32_t finding, int index,
                      const struct store_side *side, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_SIDE, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, finding);
    sqlite3_bind_int(statement, 2, index);
    sqlite3_bind_text(statement, 3, side->ranks ? side->ranks : "", -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 4, side->process);
    sqlite3_bind_text(statement, 5, side->call ? side->call : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 6, side->phase ? side->phase : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 7, side->where ? side->where : "", -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 8, (sqlite3_int64)side->since_ns);
    sqlite3_bind_int64(statement, 9, (sqlite3_int64)side->stack);
    sqlite3_bind_int(statement, 10, side->stack_is_address);
    sqlite3_bind_int64(statement, 11, (sqlite3_int64)side->where_stack);
    sqlite3_bind_int(statement, 12, side->where_stack_is_address);
    if (store_run(store, statement, err) < 0)
        return -1;
    const struct act_key key = {finding, index};
    return store_act(store, &key, "did", &side->act, err) < 0 ||
                   store_act(store, &key, "now", &side->now, err) < 0
               ? -1
               : 0;
}

int store_finding(struct store *store, const struct store_finding *finding, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_FINDING, err);
    if (!statement)
        return -1;
    const uint32_t id = store->finding_base + finding->id;
    const char *const texts[] = {finding->code, finding->severity, finding->certainty,
                                 finding->state};
    sqlite3_bind_int64(statement, 1, id);
    for (int i = 0; i < 4; i++)
        sqlite3_bind_text(statement, 2 + i, texts[i], -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 6, (sqlite3_int64)finding->comm);
    if (finding->has_number)
        sqlite3_bind_int64(statement, 7, (sqlite3_int64)finding->number);
    else
        sqlite3_bind_null(statement, 7);
    sqlite3_bind_int64(statement, 8, (sqlite3_int64)finding->first_ns);
    sqlite3_bind_int64(statement, 9, (sqlite3_int64)finding->last_ns);
    sqlite3_bind_int64(statement, 10, (sqlite3_int64)finding->times);
    sqlite3_bind_int64(statement, 11, (sqlite3_int64)finding->fingerprint);
    sqlite3_bind_text(statement, 12, finding->what ? finding->what : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 13, finding->todo ? finding->todo : "", -1, SQLITE_STATIC);
    if (store_run(store, statement, err) < 0)
        return -1;
    static const enum store_statement removals[] = {STORE_SIDES_REMOVE, STORE_ACTS_REMOVE,
                                                    STORE_CALLS_REMOVE};
    for (size_t i = 0; i < sizeof removals / sizeof *removals; i++)
        if (remove_of_finding(store, removals[i], id, err) < 0)
            return -1;
    for (int i = 0; i < finding->sides; i++)
        if (store_side(store, id, i, &finding->side[i], err) < 0)
            return -1;
    return 0;
}
