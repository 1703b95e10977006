/* split_groups.c: compares the ranks that a split puts together with those that its color names. */
#include "analyzer/checks/match/split_groups.h"

#include <stdlib.h>

#include "analyzer/findings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/base/rankset.h"

enum {
    OWN_COLORS =
        1 << 20,       /* below it: colors that a program numbers itself; so is one hash of 2,048 */
    SEARCHES_MAX = 8,  /* of one split: programs may have colors of another kind */
    RANKS_TRIED = 512, /* of a larger parent, ranks are not tried one by one */
};

/* hash() of a tuple of numbers, as CPython 3.8 and later computes it on 64 bits
 * (Objects/tupleobject.c). */
struct tuple_hash {
    uint64_t hash, length;
};

static const uint64_t prime_1 = 11400714785074694791u, prime_2 = 14029467366897019727u,
                      prime_5 = 2870177450012600261u;

static void tuple_add(struct tuple_hash *tuple, int rank)
{
    uint64_t hash = (tuple->length++ ? tuple->hash : prime_5) + (uint64_t)rank * prime_2;
    tuple->hash = (hash << 31 | hash >> 33) * prime_1;
}

/* abs(hash(ranks)) % 2^31, as _process_group_color of torch.distributed has it. */
static int32_t tuple_color(const struct tuple_hash *tuple)
{
    uint64_t hash = tuple->hash + (tuple->length ^ (prime_5 ^ 3527539u));
    if (hash == UINT64_MAX)
        hash = 1546275796u;
    return (int32_t)((hash >> 63 ? 0 - hash : hash) & INT32_MAX);
}

/* The color that PyTorch gives a group of these ranks of the default group. */
static int32_t split_color(const struct rankset *ranks)
{
    struct tuple_hash tuple = {0};
    for (int rank = rankset_next(ranks, 0); rank >= 0; rank = rankset_next(ranks, rank + 1))
        tuple_add(&tuple, rank);
    return tuple_color(&tuple);
}

static void split_forget(struct kept_split *split)
{
    free(split->call);
    *split = (struct kept_split){0};
}

void split_groups_free(struct split_groups *groups)
{
    for (int i = 0; i < SPLITS_KEPT; i++)
        split_forget(&groups->kept[i]);
}

/* That of this number; else a new one, in the place of the oldest. NULL without memory. */
static struct kept_split *split_get(struct split_groups *groups, uint32_t ordinal, int ranks)
{
    struct kept_split *place = &groups->kept[0];
    for (int i = 0; i < SPLITS_KEPT; i++) {
        struct kept_split *split = &groups->kept[i];
        if (split->call && split->ordinal == ordinal)
            return split;
        if (place->call && (!split->call || split->ordinal < place->ordinal))
            place = split;
    }
    split_forget(place);
    place->call = calloc((size_t)ranks, sizeof *place->call);
    place->ordinal = ordinal;
    place->ranks = ranks;
    return place->call ? place : NULL;
}

/* Adds the ranks that gave this color. */
static void add_callers(const struct kept_split *split, int32_t color, struct rankset *ranks)
{
    for (int rank = 0; split->call && rank < split->ranks; rank++)
        if (split->call[rank].member && split->call[rank].color == color)
            rankset_add(ranks, rank);
}

/* Whether each of the callers with this color has another place, and no place is free; of
 * PyTorch 2.15 they are the group then. */
static bool places_are_filled(const struct kept_split *split, int32_t color,
                              const struct rankset *callers)
{
    int count = rankset_count(callers);
    int64_t sum = 0;
    if (!rankset_has(callers, color))
        return false;
    for (int rank = rankset_next(callers, 0); rank >= 0; rank = rankset_next(callers, rank + 1)) {
        int32_t key = split->call[rank].key;
        if (key < 0 || key >= count)
            return false;
        sum += key;
    }
    return sum == (int64_t)count * (count - 1) / 2;
}

/* The group that a color of PyTorch 2.15 names, as far as the callers show it: all ranks that gave
 * the color in any split, and the lowest rank of the group, which is the color. */
static bool find_by_lowest(const struct split_groups *groups, int32_t color, struct rankset *meant)
{
    for (int i = 0; i < SPLITS_KEPT; i++)
        add_callers(&groups->kept[i], color, meant);
    return !rankset_add(meant, color);
}

/* The group that the color names, if it is one of those that a mistake makes likely: all ranks that
 * gave the color in any split, all ranks of the parent, or those that met and one more class or
 * rank of the same split. */
static bool find_meant(const struct split_groups *groups, const struct kept_split *split,
                       int32_t color, const struct rankset *met, struct rankset *meant)
{
    for (int i = 0; i < SPLITS_KEPT; i++)
        add_callers(&groups->kept[i], color, meant);
    if (split_color(meant) == color)
        return true;
    for (int rank = 0; rank < split->ranks; rank++)
        rankset_add(meant, rank);
    if (split_color(meant) == color)
        return true;
    for (int rank = 0; rank < split->ranks && split->ranks <= RANKS_TRIED; rank++) {
        if (rankset_has(met, rank))
            continue;
        rankset_free(meant);
        if (rankset_copy(meant, met) || rankset_add(meant, rank))
            return false;
        if (split_color(meant) == color)
            return true;
        add_callers(split, split->call[rank].color, meant);
        if (split_color(meant) == color)
            return true;
    }
    return false;
}

static const struct split_call *first_call(const struct kept_split *split,
                                           const struct rankset *ranks)
{
    return &split->call[rankset_next(ranks, 0)];
}

static void add_callers_side(struct draft *draft, const struct kept_split *split,
                             const struct rankset *ranks, const struct act *act)
{
    struct finding_side *side = draft_side(draft, act, &first_call(split, ranks)->site);
    for (int rank = rankset_next(ranks, 0); side && rank >= 0; rank = rankset_next(ranks, rank + 1))
        draft_rank(draft, side, split->call[rank].member);
}

static void report_group(struct analyzer *analyzer, const struct kept_split *split,
                         const struct rankset *met, const struct rankset *meant,
                         const struct rankset *others)
{
    const struct comm *comm = first_call(split, met)->member->comm;
    const int api = API_ncclCommSplit;
    const struct act makes = {.did = DID_SPLIT_GROUP,
                              .call = call_of_api(api),
                              .number = (uint64_t)rankset_count(meant)},
                     differs = {.did = DID_SPLIT_OTHER, .call = call_of_api(api)};
    struct draft draft = draft_new(&check_different_setup, CERTAIN, comm);
    struct rankset shown = {0};
    draft_cover_comm(&draft, comm);
    add_callers_side(&draft, split, met, &makes);
    add_callers_side(&draft, split, others, &differs);
    draft.finding.first_ns = first_call(split, met)->site.time_ns;
    draft.finding.last_ns = first_call(split, others)->site.time_ns;
    for (int rank = rankset_next(meant, 0); rank >= 0; rank = rankset_next(meant, rank + 1))
        draft.failed |= rankset_add(&shown, member_shown_rank(split->call[rank].member)) != 0;
    const struct values values = {.set = {&shown}, .value = {split->ordinal}};
    draft_headline(&draft, HEADLINE_SPLIT_WITHOUT_OTHERS, ADVICE_SAME_GROUPS, &values);
    rankset_free(&shown);
    findings_report(analyzer, &draft, NULL);
}

/* The ranks that met with this color are not those that it names. */
static void check_class(struct analyzer *analyzer, struct split_groups *groups,
                        const struct kept_split *split, int32_t color)
{
    struct rankset met = {0}, meant = {0}, others = {0};
    add_callers(split, color, &met);
    bool is_numbered = first_call(split, &met)->member->comm->is_numbered;
    if (is_numbered ? find_by_lowest(groups, color, &meant)
                    : find_meant(groups, split, color, &met, &meant)) {
        for (int rank = rankset_next(&meant, 0); rank >= 0; rank = rankset_next(&meant, rank + 1))
            if (!rankset_has(&met, rank) && rankset_add(&others, rank))
                analyzer->failed = true;
        if (rankset_count(&others)) {
            groups->reported = true;
            report_group(analyzer, split, &met, &meant, &others);
        }
    }
    rankset_free(&met);
    rankset_free(&meant);
    rankset_free(&others);
}

struct split_caller {
    int32_t color;
    int rank;
};

static int compare_callers(const void *left, const void *right)
{
    const struct split_caller *a = left, *b = right;
    if (a->color != b->color)
        return a->color < b->color ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Whether the color names the callers that gave it, or is not one of PyTorch's. */
static bool names_its_callers(const struct kept_split *split, const struct split_caller *callers,
                              int count)
{
    int32_t color = callers->color;
    struct tuple_hash tuple = {0};
    if (color < 0)
        return true;
    if (split->call[callers->rank].member->comm->is_numbered) {
        struct rankset met = {0};
        add_callers(split, color, &met);
        bool filled = places_are_filled(split, color, &met);
        rankset_free(&met);
        return filled;
    }
    for (int i = 0; i < count; i++)
        tuple_add(&tuple, callers[i].rank);
    return color < OWN_COLORS || tuple_color(&tuple) == color;
}

/* All members have called it. Returns whether each color names the ranks that gave it. */
static bool check_split(struct analyzer *analyzer, struct split_groups *groups,
                        const struct kept_split *split)
{
    struct split_caller *callers = malloc((size_t)split->ranks * sizeof *callers);
    int searches = 0;
    if (!callers) {
        analyzer->failed = true;
        return true;
    }
    for (int rank = 0; rank < split->ranks; rank++)
        callers[rank] = (struct split_caller){split->call[rank].color, rank};
    qsort(callers, (size_t)split->ranks, sizeof *callers, compare_callers);
    for (int i = 0, next = 0; i < split->ranks; i = next) {
        for (next = i; next < split->ranks && callers[next].color == callers[i].color;)
            next++;
        if (names_its_callers(split, &callers[i], next - i))
            continue;
        if (searches++ < SEARCHES_MAX && !groups->reported)
            check_class(analyzer, groups, split, callers[i].color);
    }
    free(callers);
    return !searches;
}

void split_groups_add(struct analyzer *analyzer, struct split_groups *groups,
                      const struct member *member, const struct record *record,
                      const struct site *site)
{
    int ranks = member->comm->nranks;
    if (groups->reported || ranks < 1 || member->rank < 0 || member->rank >= ranks)
        return;
    struct kept_split *split = split_get(groups, record->comm.ordinal, ranks);
    if (!split) {
        analyzer->failed = true;
        return;
    }
    struct split_call *call = &split->call[member->rank];
    split->calls += !call->member;
    *call = (struct split_call){
        .member = member, .color = record->comm.color, .key = record->comm.key, .site = *site};
    if (split->calls < split->ranks)
        return;
    if (check_split(analyzer, groups, split))
        split_forget(split);
    for (int i = 0; i < SPLITS_KEPT && !groups->reported; i++)
        if (&groups->kept[i] != split && groups->kept[i].call && groups->kept[i].calls == ranks)
            check_split(analyzer, groups, &groups->kept[i]);
    if (groups->reported)
        split_groups_free(groups);
}
