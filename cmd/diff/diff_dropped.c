/* diff_dropped.c: leaves out what one side has and the other dropped. */
#include "cmd/diff/diff_dropped.h"

#include <stdlib.h>

#include "lib/base/array.h"
#include "lib/trace/names.h"

/* The first collective of a member whose number is not below `number`: its number in *number and
 * its index in *index, DIFF_NOTHING and all that the member called if there is none. */
static int find_op_from(struct diff_side *side, int member, uint64_t *number, uint64_t *index,
                        struct error *err)
{
    struct diff_op op;
    int got;
    sqlite3_stmt *ops = diff_ops(side, member, 0, err);
    if (!ops)
        return -1;
    while ((got = diff_op_next(ops, &op)) > 0)
        if (api_class_of(op.record.api) == CLASS_COLLECTIVE && op.record.op.number >= *number)
            break;
    if (got < 0)
        error_set(err, "can't read the temporary file of %s: %s", side->path,
                  sqlite3_errmsg(side->store));
    *number = got > 0 ? op.record.op.number : DIFF_NOTHING;
    *index = got > 0 ? op.index : side->member[member].operations;
    sqlite3_finalize(ops);
    return got < 0 ? -1 : 0;
}

static bool is_same_gap(const struct diff_gap *a, const struct diff_gap *b)
{
    return a->pair == b->pair && a->dropped[0] == b->dropped[0] && a->dropped[1] == b->dropped[1] &&
           (a->number == DIFF_NOTHING) == (b->number == DIFF_NOTHING);
}

static int add_gap(struct diff_gaps *gaps, const struct diff_gap *found, int rank)
{
    int i = 0;
    while (i < gaps->gaps && !is_same_gap(&gaps->gap[i], found))
        i++;
    if (i == gaps->gaps) {
        if (!ARRAY_ADD(gaps->gap, gaps->gaps))
            return -1;
        gaps->gap[gaps->gaps++] = *found;
    }
    struct diff_gap *gap = &gaps->gap[i];
    if (found->number < gap->number)
        gap->number = found->number;
    if (found->number > gap->last_number)
        gap->last_number = found->number;
    return rankset_add(&gap->ranks, rank < 0 ? 0 : rank);
}

/* The number from which on both members are whole; 0 if nothing was dropped. */
static void find_common_start(struct diff_gap *gap, struct diff_side *const side[2],
                              const int member[2])
{
    for (int which = 0; which < 2; which++) {
        const struct diff_member *of = &side[which]->member[member[which]];
        uint64_t number = trace_member_start(side[which]->trace, of->process,
                                             side[which]->comm[of->comm].id, of->rank);
        gap->dropped[which] = number > 0;
        if (number > gap->number)
            gap->number = number;
    }
}

static int cut_dropped(struct diff_gaps *gaps, struct diff_pairs *pairs, int pair, int place,
                       struct diff_side *const side[2], struct error *err)
{
    int *const members = pairs->pair[pair].member[0], *const others = pairs->pair[pair].member[1];
    const int member[2] = {members[place], others[place]};
    struct diff_gap gap = {.pair = pair};
    uint64_t index[2];
    find_common_start(&gap, side, member);
    if (!gap.number)
        return 0;
    for (int which = 0; which < 2; which++) {
        uint64_t number = gap.number;
        if (find_op_from(side[which], member[which], &number, &index[which], err))
            return -1;
        if (number == DIFF_NOTHING)
            gap.number = DIFF_NOTHING;
    }
    if (gap.number == DIFF_NOTHING && !side[0]->member[member[0]].operations &&
        !side[1]->member[member[1]].operations)
        return 0;
    for (int which = 0; which < 2; which++) {
        side[which]->process[side[which]->member[member[which]].process].left_out = true;
        if (gap.number != DIFF_NOTHING &&
            diff_side_forget(side[which], member[which], index[which], err))
            return -1;
    }
    if (gap.number == DIFF_NOTHING)
        members[place] = others[place] = -1;
    return add_gap(gaps, &gap, side[0]->member[member[0]].shown_rank) ? diff_no_memory(err) : 0;
}

int diff_cut_dropped(struct diff_gaps *gaps, struct diff_pairs *pairs,
                     struct diff_side *const side[2], struct error *err)
{
    *gaps = (struct diff_gaps){0};
    for (int i = 0; i < pairs->pairs; i++)
        for (int place = 0; place < pairs->pair[i].members; place++)
            if (pairs->pair[i].member[0][place] >= 0 && pairs->pair[i].member[1][place] >= 0 &&
                cut_dropped(gaps, pairs, i, place, side, err))
                return -1;
    return 0;
}

void diff_gaps_free(struct diff_gaps *gaps)
{
    for (int i = 0; i < gaps->gaps; i++)
        rankset_free(&gaps->gap[i].ranks);
    free(gaps->gap);
    *gaps = (struct diff_gaps){0};
}
