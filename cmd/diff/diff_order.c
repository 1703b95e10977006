/* diff_order.c: compares the order in which ranks go over their communicators. */
#include "cmd/diff/diff_order.h"

#include <stdlib.h>

#include "lib/base/array.h"

/* Two processes of equal rank, call by call. */
struct order_walk {
    struct diff_side *const *side;
    const struct diff_pairs *pairs;
    int *pair_of[2]; /* by communicator: its pair, -1 none */
    bool relative;
    unsigned unknown;
    sqlite3_stmt *ops[2];
    struct diff_op op[2];
    uint64_t word[2];
};

static int map_pairs(struct order_walk *walk)
{
    for (int which = 0; which < 2; which++) {
        int comms = walk->side[which]->comms;
        walk->pair_of[which] = malloc(((size_t)comms + 1) * sizeof(int));
        if (!walk->pair_of[which])
            return -1;
        for (int i = 0; i < comms; i++)
            walk->pair_of[which][i] = -1;
        for (int i = 0; i < walk->pairs->pairs; i++)
            walk->pair_of[which][walk->pairs->pair[i].comm[which]] = i;
    }
    return 0;
}

/* The next call on a communicator that both sides have: 1, 0 at the end, -1 on failure. */
static int walk_next(struct order_walk *walk, int which)
{
    const struct diff_side *side = walk->side[which];
    int got;
    while ((got = diff_op_next(walk->ops[which], &walk->op[which])) > 0) {
        const struct diff_comm *comm = &side->comm[side->member[walk->op[which].member].comm];
        int pair = walk->pair_of[which][comm - side->comm];
        if (pair < 0)
            continue;
        walk->word[which] =
            diff_op_word(&walk->op[which], walk->unknown, walk->relative, comm->nranks) ^
            ((uint64_t)pair + 1) * 0x9e3779b97f4a7c15u;
        return 1;
    }
    return got;
}

static int add_order(struct diff_orders *orders, const struct order_walk *walk, uint64_t index,
                     int rank, struct error *err)
{
    int i = 0;
    while (i < orders->differences && (orders->difference[i].index != index ||
                                       orders->difference[i].word[0] != walk->word[0] ||
                                       orders->difference[i].word[1] != walk->word[1]))
        i++;
    if (i == orders->differences) {
        if (!ARRAY_ADD(orders->difference, i))
            return diff_no_memory(err);
        orders->difference[orders->differences++] =
            (struct order_difference){.index = index,
                                      .word = {walk->word[0], walk->word[1]},
                                      .op = {walk->op[0], walk->op[1]}};
    }
    return rankset_add(&orders->difference[i].ranks, rank) ? diff_no_memory(err) : 0;
}

static int fail_walk(const struct order_walk *walk, int which, struct error *err)
{
    return error_set(err, "can't read the temporary file of %s: %s", walk->side[which]->path,
                     sqlite3_errmsg(walk->side[which]->store));
}

static int compare_orders(struct diff_orders *orders, struct order_walk *walk, const int process[2],
                          int rank, struct error *err)
{
    int result = 0;
    for (int which = 0; which < 2; which++) {
        walk->ops[which] = diff_process_ops(walk->side[which], process[which], err);
        result = walk->ops[which] ? result : -1;
    }
    for (uint64_t index = 0; !result; index++) {
        int got[2] = {walk_next(walk, 0), walk_next(walk, 1)};
        if (got[0] < 0 || got[1] < 0)
            result = fail_walk(walk, got[0] < 0 ? 0 : 1, err);
        if (got[0] <= 0 || got[1] <= 0)
            break;
        if (walk->word[0] != walk->word[1]) {
            result = add_order(orders, walk, index, rank, err);
            break;
        }
    }
    sqlite3_finalize(walk->ops[0]);
    sqlite3_finalize(walk->ops[1]);
    return result;
}

/* The process of a rank if its order can be compared, else -1: one process, one thread, nothing
 * else differs, and all of its calls are compared. */
static int find_walk_process(const struct diff_side *side, int rank)
{
    int process = -1;
    for (int i = 0; i < side->members; i++) {
        const struct diff_member *member = &side->member[i];
        if (member->shown_rank != rank)
            continue;
        if (member->differs || (process >= 0 && process != member->process) ||
            side->process[member->process].several_threads ||
            side->process[member->process].left_out)
            return -1;
        process = member->process;
    }
    return process;
}

static int list_order_ranks(const struct diff_side *side, int rank, struct rankset *ranks)
{
    if (rank >= 0)
        return rankset_add(ranks, rank);
    for (int i = 0; i < side->members; i++)
        if (side->member[i].shown_rank >= 0 && rankset_add(ranks, side->member[i].shown_rank))
            return -1;
    return 0;
}

int diff_orders(struct diff_orders *orders, const struct diff_pairs *pairs,
                struct diff_side *const side[2], int rank, int with, struct error *err)
{
    *orders = (struct diff_orders){0};
    struct order_walk walk = {.side = side,
                              .pairs = pairs,
                              .relative = rank >= 0,
                              .unknown = side[0]->unknown | side[1]->unknown};
    struct rankset ranks = {0};
    int result = map_pairs(&walk) || list_order_ranks(side[0], rank, &ranks) ? diff_no_memory(err)
                                                                             : 0;
    for (int of = rankset_next(&ranks, 0); of >= 0 && !result && pairs->pairs > 1;
         of = rankset_next(&ranks, of + 1)) {
        const int process[2] = {find_walk_process(side[0], of),
                                find_walk_process(side[1], rank >= 0 ? with : of)};
        if (process[0] >= 0 && process[1] >= 0)
            result = compare_orders(orders, &walk, process, of, err);
    }
    rankset_free(&ranks);
    free(walk.pair_of[0]);
    free(walk.pair_of[1]);
    return result;
}

void diff_orders_free(struct diff_orders *orders)
{
    for (int i = 0; i < orders->differences; i++)
        rankset_free(&orders->difference[i].ranks);
    free(orders->difference);
    *orders = (struct diff_orders){0};
}
