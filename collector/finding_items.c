/* finding_items.c: writes a host's findings into messages, and reads them. */
#include "collector/finding_items.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/check.h"

static_assert((int)ITEM_SIDES_MAX == (int)FINDING_SIDES_MAX, "all sides of a finding are sent");

static bool ranks_fit(const struct rankset *ranks)
{
    char text[sizeof((struct item_side *)0)->ranks];
    int first, last = 0;
    const char *at = rankset_text(ranks, text, sizeof text);
    if (!strcmp(text, "none"))
        return true;
    while (*at && !rankset_take_range(&at, &first, &last))
        continue;
    return !*at && last < ITEM_RANKS_MAX; /* one that is cut ends in "..." */
}

bool finding_items_fit(const struct finding *finding)
{
    for (int i = 0; i < finding->sides; i++)
        if (!ranks_fit(&finding->side[i].ranks))
            return false;
    return true;
}

static int cut_ranks(struct rankset *ranks)
{
    char text[sizeof((struct item_side *)0)->ranks];
    struct rankset cut = {0};
    const char *at = rankset_text(ranks, text, sizeof text);
    int failed = 0;
    for (int first, last; !rankset_take_range(&at, &first, &last);)
        for (int rank = first; rank <= last && rank < ITEM_RANKS_MAX; rank++)
            failed |= rankset_add(&cut, rank);
    rankset_free(ranks);
    *ranks = cut;
    return failed;
}

int finding_items_cut(struct finding *finding)
{
    int failed = 0;
    for (int i = 0; i < finding->sides; i++)
        if (!ranks_fit(&finding->side[i].ranks))
            failed |= cut_ranks(&finding->side[i].ranks);
    return failed;
}

static void put_item_text(char *to, size_t bytes, const char *from)
{
    snprintf(to, bytes, "%s", from ? from : "");
}
#define PUT_TEXT(to, from) put_item_text(to, sizeof(to), from)

static uint32_t item_flag(bool is_set, uint32_t flag)
{
    return is_set ? flag : 0;
}

static const char *text_or_null(const char *text)
{
    return *text ? text : NULL;
}

static struct item_awaited awaited_item(const struct awaited *awaited)
{
    struct item_awaited item = {
        .comm = awaited->comm, .number = awaited->number, .call = awaited->call};
    PUT_TEXT(item.kind, awaited_key(awaited->kind));
    PUT_TEXT(item.title, awaited->title);
    return item;
}

static struct item_act act_item(const struct act *act)
{
    struct item_act item = {.number = act->number,
                            .value = act->value,
                            .rank = act->rank,
                            .call = act->call,
                            .wait = awaited_item(&act->wait),
                            .behind = awaited_item(&act->behind)};
    PUT_TEXT(item.did, did_key(act->did));
    PUT_TEXT(item.name, act->name);
    PUT_TEXT(item.phase, act->phase);
    return item;
}

static struct item_side side_item(const struct finding_side *side)
{
    struct item_side item = {
        .process = side->process,
        .flags = item_flag(side->stack_is_address, ITEM_SIDE_ADDRESS) |
                 item_flag(side->where_stack_is_address, ITEM_SIDE_WHERE_ADDRESS),
        .stack = side->stack,
        .where_stack = side->where_stack,
        .since_ns = side->since_ns,
        .act = act_item(&side->act),
        .now = act_item(&side->now),
    };
    rankset_text(&side->ranks, item.ranks, sizeof item.ranks);
    PUT_TEXT(item.phase, side->phase);
    return item;
}

void finding_items_add(struct message_writer *writer, const struct finding *finding)
{
    struct item_finding item = {
        .comm = finding->comm,
        .number = finding->number,
        .first_ns = finding->first_ns,
        .last_ns = finding->last_ns,
        .times = finding->times,
        .fingerprint = finding->fingerprint,
        .id = finding->id,
        .severity = (uint8_t)finding->severity,
        .certainty = (uint8_t)finding->certainty,
        .state = (uint8_t)finding->state,
        .flags = (uint8_t)(item_flag(finding->has_number, ITEM_FINDING_NUMBER) |
                           item_flag(finding->is_consequence, ITEM_FINDING_CONSEQUENCE) |
                           item_flag(finding->merges_ranks, ITEM_FINDING_RANKS) |
                           item_flag(finding->merges_sides, ITEM_FINDING_SIDES)),
    };
    PUT_TEXT(item.code, code_name(finding->code));
    PUT_TEXT(item.what, finding->what);
    PUT_TEXT(item.todo, finding->todo);
    for (int i = 0; i < finding->sides; i++) {
        const struct item_side side = side_item(&finding->side[i]);
        message_add(writer, ITEM_SIDE, &side);
    }
    message_add(writer, ITEM_FINDING, &item);
}

static struct awaited awaited_of_item(const struct item_awaited *item)
{
    struct awaited awaited = {.kind = awaited_of_key(item->kind),
                              .call = item->call,
                              .comm = item->comm,
                              .number = item->number};
    PUT_TEXT(awaited.title, item->title);
    return awaited;
}

/* Its texts are the item's. */
static struct act act_of_item(const struct item_act *item)
{
    enum did did = did_of_key(item->did);
    if (did == DID_COUNT)
        return (struct act){.did = DID_OTHER};
    return (struct act){.did = did,
                        .call = item->call,
                        .value = item->value,
                        .rank = item->rank,
                        .number = item->number,
                        .wait = awaited_of_item(&item->wait),
                        .behind = awaited_of_item(&item->behind),
                        .name = text_or_null(item->name),
                        .phase = text_or_null(item->phase)};
}

static int take_act(struct act *to, char **words, const struct item_act *item)
{
    const struct act act = act_of_item(item);
    *words = act_words(&act);
    return act_copy(to, &act) || !*words ? -1 : 0;
}

static int take_side(struct finding_side *side, const struct item_side *item)
{
    *side = (struct finding_side){
        .process = item->process,
        .phase = strdup(item->phase),
        .stack = item->stack,
        .stack_is_address = (item->flags & ITEM_SIDE_ADDRESS) != 0,
        .where_stack = item->where_stack,
        .where_stack_is_address = (item->flags & ITEM_SIDE_WHERE_ADDRESS) != 0,
        .since_ns = item->since_ns};
    int failed = take_act(&side->act, &side->call, &item->act);
    failed |= take_act(&side->now, &side->where, &item->now);
    if (*item->ranks)
        failed |= rankset_parse(&side->ranks, item->ranks);
    return failed || !side->phase ? -1 : 0;
}

int finding_items_take(struct finding *finding, const struct item_finding *item,
                       const struct item_side *side, int sides)
{
    const struct check *check = check_find(item->code);
    if (!check || item->severity > SEVERITY_NOTE || item->certainty > POSSIBLE ||
        item->state > FINDING_RESOLVED)
        return 0;
    *finding = (struct finding){
        .id = item->id,
        .code = check->code,
        .severity = (enum severity)item->severity,
        .certainty = (enum certainty)item->certainty,
        .state = (enum finding_state)item->state,
        .is_consequence = (item->flags & ITEM_FINDING_CONSEQUENCE) != 0,
        .comm = item->comm,
        .number = item->number,
        .has_number = (item->flags & ITEM_FINDING_NUMBER) != 0,
        .first_ns = item->first_ns,
        .last_ns = item->last_ns,
        .times = item->times,
        .fingerprint = item->fingerprint,
        .what = strdup(item->what),
        .todo = strdup(item->todo),
        .merges_ranks = (item->flags & ITEM_FINDING_RANKS) != 0,
        .merges_sides = (item->flags & ITEM_FINDING_SIDES) != 0,
    };
    int failed = !finding->what || !finding->todo;
    for (int i = 0; i < sides && i < FINDING_SIDES_MAX; i++)
        failed |= take_side(&finding->side[finding->sides++], &side[i]);
    if (failed)
        finding_free(finding);
    return failed ? -1 : 1;
}
