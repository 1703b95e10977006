/* collector_state.c: keeps the tables member_state, wait_state and speed_state as the analyzer
 * sees the job, for readers that can't replay. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyzer.h"
#include "analyzer/model/table.h"
#include "collector/collector_state.h"
#include "collector/state_rows.h"
#include "lib/base/clock.h"
#include "lib/trace/store.h"

static const uint64_t every_ns = 500000000;

struct stored_member_key {
    uint64_t comm;
    int64_t rank;
};

/* What was stored of a member last. */
struct stored_member {
    struct stored_member_key key;
    uint64_t hash, pass; /* pass: in which it was visited last */
    UT_hash_handle hh;
};

struct collector_state {
    struct stored_member *members;
    uint64_t pass, visited;   /* visits of all members; members in this one */
    uint64_t last_ns, events; /* when it was looked at last, and at how many records */
    struct store *store;      /* while members are visited */
    uint64_t now_ns;
    uint64_t waits_hash, stored_waits_hash; /* of the tree of waits as it is, as it was stored */
    int waits;                              /* its lines, counted while it is visited */
    uint64_t stored_speed;                  /* analyzer_speed_judged of what was stored */
    int speeds;                             /* rows of it that were stored */
    struct error *err;                      /* while it is written: why that failed */
    bool failed;
};

struct collector_state *collector_state_new(void)
{
    return calloc(1, sizeof(struct collector_state));
}

static void forget_members(struct collector_state *state)
{
    struct stored_member *member, *next;
    HASH_ITER(hh, state->members, member, next) {
        HASH_DEL(state->members, member);
        free(member);
    }
}

void collector_state_free(struct collector_state *state)
{
    if (state)
        forget_members(state);
    free(state);
}

static uint64_t hash_add(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

static uint64_t hash_member_view(const struct member_state *view)
{
    const uint64_t numbers[] = {view->issued,
                                view->started,
                                view->done,
                                view->p2p,
                                view->stack,
                                view->since_ns,
                                (uint64_t)view->process,
                                view->destroyed,
                                view->ended,
                                (uint64_t)view->nranks};
    uint64_t hash = hash_add(14695981039346656037u, numbers, sizeof numbers);
    hash = hash_add(hash, view->where, strlen(view->where));
    return hash_add(hash, view->phase, strlen(view->phase));
}

/* Whether it is as it was stored; else takes note of how it is now. */
static bool is_stored(struct collector_state *state, const struct member_state *view)
{
    struct stored_member_key key = {view->comm, view->rank};
    struct stored_member *member;
    uint64_t hash = hash_member_view(view);
    HASH_FIND(hh, state->members, &key, sizeof key, member);
    state->visited++;
    if (member)
        member->pass = state->pass;
    if (member && member->hash == hash)
        return true;
    if (!member && (member = calloc(1, sizeof *member))) {
        member->pass = state->pass;
        member->key = key;
        TABLE_ADD(state->members, key, member);
        if (!TABLE_ADDED(member)) { /* it is stored again next time */
            free(member);
            return false;
        }
    }
    if (member)
        member->hash = hash;
    return false;
}

static void store_one(void *context, const struct member_state *view)
{
    struct collector_state *state = context;
    if (state->failed || is_stored(state, view))
        return;
    state->failed = store_member(state->store, view, state->now_ns, state->err) < 0;
}

/* Those that the analyzer has forgotten, once they are most. */
static void forget_unvisited(struct collector_state *state)
{
    struct stored_member *member, *next;
    if (HASH_COUNT(state->members) <= 2 * state->visited)
        return;
    HASH_ITER(hh, state->members, member, next) {
        if (member->pass == state->pass)
            continue;
        HASH_DEL(state->members, member);
        free(member);
    }
}

static void hash_wait(void *context, const struct wait_view *wait)
{
    struct collector_state *state = context;
    const uint64_t numbers[] = {(uint64_t)wait->depth, wait->in_cycle, wait->stuck, wait->since_ns,
                                wait->stack};
    state->waits_hash = hash_add(state->waits_hash, numbers, sizeof numbers);
    state->waits_hash = hash_add(state->waits_hash, wait->text, strlen(wait->text));
    state->waits++;
}

static void store_one_wait(void *context, const struct wait_view *view)
{
    struct collector_state *state = context;
    const struct store_wait wait = wait_row(view, state->waits++);
    if (!state->failed)
        state->failed = store_wait(state->store, &wait, state->err) < 0;
}

/* The tree of waits, if it changed. Keeps the last tree of a job that ended: readers of the trace
 * want to see it. */
static void store_waits(struct collector_state *state, struct analyzer *analyzer, bool end)
{
    state->waits_hash = 14695981039346656037u;
    state->waits = 0;
    if (analyzer_visit_waits(analyzer, hash_wait, state) < 0 ||
        state->waits_hash == state->stored_waits_hash || (end && state->waits == 0))
        return;
    state->stored_waits_hash = state->waits_hash;
    if (state->waits == 0)
        state->failed = store_wait(state->store, NULL, state->err) < 0;
    state->waits = 0;
    analyzer_visit_waits(analyzer, store_one_wait, state);
}

static void store_one_speed(void *context, const struct speed_standing_view *view)
{
    struct collector_state *state = context;
    char trend[TREND_BYTES];
    const struct store_speed row = speed_row(view, state->speeds++, trend);
    if (!state->failed)
        state->failed = store_speed(state->store, &row, state->err) < 0;
}

static void store_speeds(struct collector_state *state, struct analyzer *analyzer)
{
    uint64_t judged = analyzer_speed_judged(analyzer);
    if (judged == state->stored_speed)
        return;
    state->stored_speed = judged;
    state->speeds = 0;
    analyzer_visit_speed_standings(analyzer, store_one_speed, state);
}

int collector_state_write(struct collector_state *state, const struct state_source *source,
                          bool end, struct error *err)
{
    state->store = source->store;
    state->now_ns = realtime_now_ns();
    state->failed = false;
    state->err = err;
    state->pass++;
    state->visited = 0;
    analyzer_visit_members(source->analyzer, store_one, state);
    forget_unvisited(state);
    if (!state->failed)
        store_waits(state, source->analyzer, end);
    if (!state->failed)
        store_speeds(state, source->analyzer);
    state->err = NULL;
    return state->failed ? -1 : 0;
}

void collector_state_forget(struct collector_state *state)
{
    forget_members(state);
    state->stored_waits_hash = state->stored_speed = 0;
    state->events = 0;
}

/* What can't be stored now is tried again the next time. */
void collector_state_store(struct collector_state *state, const struct state_source *source,
                           bool now)
{
    uint64_t time_ns = monotonic_now_ns();
    if (!state || !source->store ||
        (!now && (time_ns - state->last_ns < every_ns || source->records == state->events)))
        return;
    state->last_ns = time_ns;
    state->events = source->records;
    if (store_begin(source->store, NULL) == 0 &&
        collector_state_write(state, source, now, NULL) == 0 &&
        store_commit(source->store, NULL) == 0)
        return;
    store_rollback(source->store);
    collector_state_forget(state);
}
