/* diff_compare.c: compares the calls of paired ranks and groups ranks that differ alike. */
#include "cmd/diff/diff_compare.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/hash.h"

enum { HASHED_MAX = 256 }; /* operations of a difference that identify it */

/* Two members under comparison. */
struct comparison {
    struct diff_side *const *side;
    int member[2];
    int clock[2]; /* members of the pair by whose time differences are put in order: one for all
                     ranks */
    int nranks[2];
    bool relative;
    unsigned unknown;
    struct kind { /* a difference, however often */
        uint64_t what, times, last;
        struct hunk first;
    } kind[DIFF_KINDS_MAX];
    int kinds;
    uint64_t hunks, not_kept;
    struct error *err;
};

/* The operations of one member, as alignment_run takes them. */
struct op_cursor {
    const struct comparison *comparison;
    int which;
    sqlite3_stmt *ops;
};

static uint64_t hash_op(const struct comparison *comparison, int which, const struct diff_op *op)
{
    return diff_op_word(op, comparison->unknown, comparison->relative, comparison->nranks[which]);
}

static int read_op_word(void *context, uint64_t *word)
{
    struct op_cursor *cursor = context;
    struct diff_op op;
    int got = diff_op_next(cursor->ops, &op);
    if (got < 0)
        return error_set(cursor->comparison->err, "can't read the temporary file of %s: %s",
                         cursor->comparison->side[cursor->which]->path,
                         sqlite3_errmsg(cursor->comparison->side[cursor->which]->store));
    if (got)
        *word = hash_op(cursor->comparison, cursor->which, &op);
    return got;
}

/* Hash of the operations [at, at + count) of a member; long ones by their beginning. */
static int hash_ops(struct comparison *comparison, int which, uint64_t at, uint64_t count,
                    uint64_t *hash)
{
    struct diff_op op;
    *hash = hash_word(*hash, count);
    sqlite3_stmt *ops =
        diff_ops(comparison->side[which], comparison->member[which], at, comparison->err);
    if (!ops)
        return -1;
    for (uint64_t i = 0; i < count && i < HASHED_MAX && diff_op_next(ops, &op) > 0; i++)
        *hash = hash_word(*hash, hash_op(comparison, which, &op));
    sqlite3_finalize(ops);
    return 0;
}

static int on_hunk(void *user, const struct hunk *hunk)
{
    struct comparison *comparison = user;
    uint64_t what = 1 + hunk->open;
    for (int which = 0; which < 2; which++)
        if (hash_ops(comparison, which, hunk->at[which], hunk->count[which], &what))
            return -1;
    comparison->hunks++;
    struct kind *kind = comparison->kind;
    while (kind < comparison->kind + comparison->kinds && kind->what != what)
        kind++;
    if (kind == comparison->kind + DIFF_KINDS_MAX) {
        comparison->not_kept++;
    } else if (kind < comparison->kind + comparison->kinds) {
        kind->times++;
        kind->last = hunk->at[0];
    } else {
        *kind = (struct kind){.what = what, .times = 1, .last = hunk->at[0], .first = *hunk};
        comparison->kinds++;
    }
    return comparison->hunks == DIFF_HUNKS_MAX;
}

/* When the operation at `index`, or the last before it, was called: from the trace's beginning. */
static uint64_t when(struct diff_side *side, int member, uint64_t index, struct error *err)
{
    const struct process_info *info = trace_process(side->trace, side->member[member].process);
    uint64_t operations = side->member[member].operations;
    struct diff_op op;
    sqlite3_stmt *ops =
        operations ? diff_ops(side, member, index < operations ? index : operations - 1, err)
                   : NULL;
    int got = ops ? diff_op_next(ops, &op) : 0;
    sqlite3_finalize(ops);
    if (got != 1)
        return 0;
    uint64_t now = op.record.time_ns + info->realtime_ns - info->monotonic_ns;
    return now > side->begin_ns ? now - side->begin_ns : 0;
}

static struct difference *add_difference(struct diff_result *result,
                                         const struct comparison *comparison,
                                         const struct kind *kind, const struct difference_key *key)
{
    struct difference *new = calloc(1, sizeof *new);
    if (!new || !ARRAY_ADD(result->difference, result->differences)) {
        free(new);
        return NULL;
    }
    result->difference[result->differences++] = new;
    new->key = *key;
    new->hunk = kind->first;
    for (int which = 0; which < 2; which++) {
        new->member[which] = comparison->member[which];
        new->at_end[which] = kind->first.at[which] + kind->first.count[which] ==
                             comparison->side[which]->member[comparison->member[which]].operations;
    }
    int timed = comparison->side[0]->member[comparison->clock[0]].operations
                    ? 0
                    : 1; /* of the side that has any */
    new->since_begin_ns = when(comparison->side[timed], comparison->clock[timed],
                               kind->first.at[timed], comparison->err);
    HASH_ADD(hh, result->table, key, sizeof new->key, new);
    return new;
}

/* Puts what two members do differently to what others do. */
static int merge_differences(struct diff_result *result, const struct comparison *comparison,
                             int pair)
{
    int rank = comparison->side[0]->member[comparison->member[0]].shown_rank;
    for (int i = 0; i < comparison->kinds; i++) {
        const struct kind *kind = &comparison->kind[i];
        struct difference_key key;
        memset(&key, 0, sizeof key);
        key = (struct difference_key){.what = kind->what,
                                      .at = {kind->first.at[0], kind->first.at[1]},
                                      .times = kind->times,
                                      .last = kind->last,
                                      .pair = pair};
        struct difference *difference;
        HASH_FIND(hh, result->table, &key, sizeof key, difference);
        if (!difference)
            difference = add_difference(result, comparison, kind, &key);
        if (!difference || rankset_add(&difference->ranks, rank < 0 ? 0 : rank))
            return diff_no_memory(comparison->err);
    }
    result->not_counted += comparison->not_kept;
    result->unequal += comparison->hunks > 0;
    return 0;
}

static int compare_paired_members(struct diff_result *result, struct comparison *comparison,
                                  int pair)
{
    struct op_cursor cursor[2];
    int status = 0;
    for (int which = 0; which < 2; which++) {
        cursor[which] = (struct op_cursor){.comparison = comparison, .which = which};
        cursor[which].ops =
            diff_ops(comparison->side[which], comparison->member[which], 0, comparison->err);
        status = cursor[which].ops ? status : -1;
    }
    if (!status && alignment_run(read_op_word, (void *const[2]){&cursor[0], &cursor[1]}, on_hunk,
                                 comparison, NULL) < 0) {
        status = -1;
        if (!comparison->err->text[0])
            diff_no_memory(comparison->err);
    }
    sqlite3_finalize(cursor[0].ops);
    sqlite3_finalize(cursor[1].ops);
    if (status || comparison->err->text[0])
        return -1;
    result->members++;
    for (int which = 0; which < 2 && comparison->hunks; which++)
        comparison->side[which]->member[comparison->member[which]].differs = true;
    return merge_differences(result, comparison, pair);
}

static int compare_pair(struct diff_result *result, const struct diff_pairs *pairs, int index,
                        struct comparison *comparison)
{
    const struct diff_pair *pair = &pairs->pair[index];
    bool first = true;
    for (int i = 0; i < pair->members; i++) {
        if (pair->member[0][i] < 0 || pair->member[1][i] < 0)
            continue;
        for (int which = 0; which < 2 && first; which++)
            comparison->clock[which] = pair->member[which][i];
        first = false;
        comparison->kinds = 0;
        comparison->hunks = comparison->not_kept = 0;
        for (int which = 0; which < 2; which++) {
            comparison->member[which] = pair->member[which][i];
            comparison->nranks[which] = comparison->side[which]->comm[pair->comm[which]].nranks;
        }
        if (compare_paired_members(result, comparison, index))
            return -1;
    }
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const struct difference *a = *(struct difference *const *)left,
                            *b = *(struct difference *const *)right;
    if (a->since_begin_ns != b->since_begin_ns)
        return a->since_begin_ns < b->since_begin_ns ? -1 : 1;
    if (a->key.pair != b->key.pair)
        return a->key.pair < b->key.pair ? -1 : 1;
    return rankset_next(&a->ranks, 0) - rankset_next(&b->ranks, 0);
}

static int list_compared_ranks(const struct diff_side *side, struct rankset *ranks)
{
    for (int i = 0; i < side->members; i++)
        if (side->member[i].shown_rank >= 0 && rankset_add(ranks, side->member[i].shown_rank))
            return -1;
    return 0;
}

static int find_only(struct diff_result *result, struct diff_side *const side[2])
{
    struct rankset ranks[2] = {{0}, {0}};
    int status = 0;
    if (side[0] != side[1] &&
        (list_compared_ranks(side[0], &ranks[0]) || list_compared_ranks(side[1], &ranks[1])))
        status = -1;
    for (int which = 0; which < 2; which++)
        for (int rank = rankset_next(&ranks[which], 0); rank >= 0 && !status;
             rank = rankset_next(&ranks[which], rank + 1))
            if (!rankset_has(&ranks[1 - which], rank))
                status = rankset_add(&result->only[which], rank);
    rankset_free(&ranks[0]);
    rankset_free(&ranks[1]);
    return status;
}

int diff_compare(struct diff_result *result, const struct diff_pairs *pairs,
                 struct diff_side *const side[2], bool relative, struct error *err)
{
    *result = (struct diff_result){0};
    struct comparison *comparison = calloc(1, sizeof *comparison);
    if (!comparison || find_only(result, side)) {
        free(comparison);
        return diff_no_memory(err);
    }
    comparison->side = side;
    comparison->relative = relative;
    comparison->unknown = side[0]->unknown | side[1]->unknown;
    comparison->err = err;
    int status = 0;
    for (int i = 0; i < pairs->pairs && !status; i++)
        status = compare_pair(result, pairs, i, comparison);
    free(comparison);
    if (result->differences)
        qsort(result->difference, (size_t)result->differences, sizeof(struct difference *),
              by_time);
    return status;
}

void diff_result_free(struct diff_result *result)
{
    HASH_CLEAR(hh, result->table);
    for (int i = 0; i < result->differences; i++) {
        rankset_free(&result->difference[i]->ranks);
        free(result->difference[i]);
    }
    free(result->difference);
    rankset_free(&result->only[0]);
    rankset_free(&result->only[1]);
    *result = (struct diff_result){0};
}
