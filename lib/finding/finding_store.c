/* finding_store.c: between findings and the rows that the database keeps of them. */
#include "lib/finding/finding_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_row_call(struct store_act *row, const struct store_call *call)
{
    if (call->called.api || awaited_of_key(call->kind) != AWAITED_NOTHING)
        row->call[row->calls++] = *call;
}

static struct store_call awaited_row(const char *role, const struct awaited *awaited)
{
    return (struct store_call){.role = role,
                               .kind = awaited_key(awaited->kind),
                               .comm = awaited->comm,
                               .number = awaited->number,
                               .title = awaited->title,
                               .called = awaited->call};
}

/* DID_OTHER without a name: nothing is known. */
static struct store_act act_row(const struct act *act)
{
    bool is_known = act->did != DID_OTHER || act->name;
    struct store_act row = {.did = is_known ? did_key(act->did) : NULL,
                            .value = act->value,
                            .rank = act->rank,
                            .number = act->number,
                            .name = act->name,
                            .phase = act->phase};
    const struct store_call calls[STORE_ACT_CALLS] = {
        {.role = "call", .kind = awaited_key(AWAITED_NOTHING), .called = act->call},
        awaited_row("wait", &act->wait),
        awaited_row("behind", &act->behind),
    };
    for (int i = 0; i < STORE_ACT_CALLS; i++)
        add_row_call(&row, &calls[i]);
    return row;
}

struct act act_of_row(const struct store_act *row)
{
    enum did did = did_of_key(row->did);
    if (did == DID_COUNT)
        return (struct act){.did = DID_OTHER};
    struct act act = {.did = did, .value = row->value, .rank = row->rank, .number = row->number};
    act.name = *row->name ? row->name : NULL;
    act.phase = *row->phase ? row->phase : NULL;
    return act;
}

void act_take_call(struct act *act, const struct store_call *call)
{
    const struct awaited awaited = {.kind = awaited_of_key(call->kind),
                                    .call = call->called,
                                    .comm = call->comm,
                                    .number = call->number};
    if (!strcmp(call->role, "call"))
        act->call = call->called;
    else if (!strcmp(call->role, "wait"))
        act->wait = awaited;
    else if (!strcmp(call->role, "behind"))
        act->behind = awaited;
}

static void awaited_take_title(struct awaited *awaited, uint64_t comm, const char *title)
{
    if (awaited->kind != AWAITED_NOTHING && awaited->comm == comm)
        snprintf(awaited->title, sizeof awaited->title, "%s", title);
}

void act_take_title(struct act *act, uint64_t comm, const char *title)
{
    awaited_take_title(&act->wait, comm, title);
    awaited_take_title(&act->behind, comm, title);
}

static struct store_side side_row(const struct finding_side *side, const char *ranks)
{
    return (struct store_side){
        .ranks = ranks,
        .call = side->call,
        .phase = side->phase,
        .where = side->where,
        .act = act_row(&side->act),
        .now = act_row(&side->now),
        .process = side->process,
        .stack = side->stack,
        .stack_is_address = side->stack_is_address,
        .where_stack = side->where_stack,
        .where_stack_is_address = side->where_stack_is_address,
        .since_ns = side->since_ns,
    };
}

static int store_with_sides(struct store *store, const struct finding *finding,
                            const struct store_side *side, struct error *err)
{
    const struct store_finding stored = {
        .id = finding->id,
        .code = code_name(finding->code),
        .severity = severity_name(finding->severity),
        .certainty = certainty_name(finding->certainty),
        .state = finding_state_name(finding->state),
        .what = finding->what,
        .todo = finding->todo,
        .comm = finding->comm,
        .number = finding->number,
        .has_number = finding->has_number,
        .first_ns = finding->first_ns,
        .last_ns = finding->last_ns,
        .times = finding->times,
        .fingerprint = finding->fingerprint,
        .side = side,
        .sides = finding->sides,
    };
    return store_finding(store, &stored, err);
}

int finding_store(struct store *store, const struct finding *finding, struct error *err)
{
    struct store_side side[FINDING_SIDES_MAX];
    char *ranks[FINDING_SIDES_MAX];
    bool failed = false;
    for (int i = 0; i < finding->sides; i++) {
        ranks[i] = rankset_text_new(&finding->side[i].ranks);
        failed |= !ranks[i];
        side[i] = side_row(&finding->side[i], ranks[i]);
    }
    int result = failed ? error_memory(err, "can't store a finding")
                        : store_with_sides(store, finding, side, err);
    for (int i = 0; i < finding->sides; i++)
        free(ranks[i]);
    return result;
}
