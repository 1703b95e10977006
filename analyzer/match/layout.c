/* layout.c: compares how two ranks divide the same data into operations. */
#include "analyzer/match/layout.h"

enum { SHIFT_PROOF = 2, SEQUEL_PROOF = 2, ORDER_PIECES = 3 };

static bool is_reducible(const struct signature *signature)
{
    return kind_has(signature->api, KIND_BUCKETS);
}

/* Pieces of one whole: all but the count is equal. */
static bool is_like(const struct piece *a, const struct piece *b)
{
    const struct signature *x = &a->signature, *y = &b->signature;
    return is_reducible(x) && x->api == y->api && x->datatype == y->datatype &&
           x->redop == y->redop && x->root == y->root;
}

/* The pieces of `early` are those of `late` from the shift on, as far as both are known. */
static bool is_shifted(const struct layout *layout, int early, uint32_t shift)
{
    int late = !early;
    uint32_t agreeing = 0;
    for (uint32_t i = 0; i < layout->pieces[early] && i + shift < layout->pieces[late];
         i++, agreeing++)
        if (signature_hash(&layout->piece[early][i].signature) !=
            signature_hash(&layout->piece[late][i + shift].signature))
            return false;
    return agreeing >= SHIFT_PROOF;
}

/* All pieces of the whole lie in one iteration, on both ranks: KNOWN, or the ranges say otherwise:
 * REFUTED. */
enum evidence { UNKNOWN, KNOWN, REFUTED };
static enum evidence is_one_iteration(const struct layout *layout, const uint32_t whole[2])
{
    const struct piece *first = &layout->piece[0][0];
    enum evidence evidence = KNOWN;
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < whole[side]; i++) {
            const struct piece *piece = &layout->piece[side][i];
            if (!piece->in_iteration || !first->in_iteration)
                evidence = evidence == REFUTED ? REFUTED : UNKNOWN;
            else if (piece->iteration != first->iteration)
                evidence = REFUTED;
        }
    return evidence;
}

/* The sums of counts meet: at the first place. */
static enum layout_answer find_whole(const struct layout *layout, uint32_t whole[2])
{
    uint64_t sum[2] = {0, 0};
    whole[0] = whole[1] = 0;
    do {
        int side = sum[0] <= sum[1] ? 0 : 1;
        if (whole[side] == layout->pieces[side])
            return whole[side] == LAYOUT_PIECES_MAX ? LAYOUT_NEVER : LAYOUT_OPEN;
        const struct piece *piece = &layout->piece[side][whole[side]++];
        if (!is_like(piece, &layout->piece[0][0]))
            return LAYOUT_NEVER;
        sum[side] += piece->signature.count;
    } while (sum[0] != sum[1]);
    return LAYOUT_OTHER_PIECES;
}

/* Each count as often on both sides. */
static bool is_permutation(const struct layout *layout, const uint32_t whole[2])
{
    if (whole[0] != whole[1])
        return false;
    for (uint32_t i = 0; i < whole[0]; i++) {
        int balance = 0;
        for (uint32_t k = 0; k < whole[0]; k++)
            balance +=
                (layout->piece[0][k].signature.count == layout->piece[0][i].signature.count) -
                (layout->piece[1][k].signature.count == layout->piece[0][i].signature.count);
        if (balance)
            return false;
    }
    return true;
}

static bool is_same(const struct piece *a, const struct piece *b)
{
    return signature_hash(&a->signature) == signature_hash(&b->signature);
}

/* What comes after the whole: both make the same calls again (nothing is shifted), until, perhaps,
 * they part again in the same way (every iteration differs). NOT_YET: too little is known. */
enum sequel { NOT_YET, IN_STEP, REPEATED, ELSE };
static enum sequel sequel_of(const struct layout *layout, const uint32_t whole[2])
{
    const struct piece *a = layout->piece[0], *b = layout->piece[1];
    uint32_t common = 0;
    for (; whole[0] + common < layout->pieces[0] && whole[1] + common < layout->pieces[1];
         common++) {
        const struct piece *next_a = &a[whole[0] + common], *next_b = &b[whole[1] + common];
        if (!is_same(next_a, next_b))
            return is_same(next_a, a) && is_same(next_b, b) ? REPEATED : ELSE;
    }
    return common >= SEQUEL_PROOF ? IN_STEP : NOT_YET;
}

/* A call too many or too few in a sequence that repeats itself: its sums meet after a round, but
 * one round is the other's, shifted by less than itself. */
static bool is_shift(const struct layout *layout, const uint32_t whole[2])
{
    uint32_t round = whole[0] > whole[1] ? whole[0] : whole[1];
    for (uint32_t shift = 1; shift <= round; shift++)
        if (is_shifted(layout, 0, shift) || is_shifted(layout, 1, shift))
            return true;
    return false;
}

static bool is_even(const struct layout *layout, int side, uint32_t pieces)
{
    const struct piece *piece = layout->piece[side];
    for (uint32_t i = 1; i < pieces; i++)
        if (piece[i].signature.count != piece[0].signature.count)
            return false;
    return true;
}

/* Pieces of one size on either side: a rank that gives half the count in each of its calls looks
 * the same as one that makes two of each. They differ in how many calls there are in the end. */
static enum layout_answer judge_even(const struct layout *layout, const uint32_t whole[2],
                                     bool is_all)
{
    uint64_t first = (uint64_t)layout->pieces[0] * whole[1];
    uint64_t second = (uint64_t)layout->pieces[1] * whole[0];
    if (!is_all)
        return LAYOUT_OPEN;
    return first == second ? LAYOUT_OTHER_PIECES : LAYOUT_NEVER;
}

/* One call of a round has another count, each time, and the calls between are alike by number: it
 * comes again after as many calls as before. In other pieces calls fall out of step. */
static bool is_count_in_place(const struct layout *layout)
{
    const struct piece *a = layout->piece[0], *b = layout->piece[1];
    uint32_t last = 0, distance = 0;
    for (uint32_t i = 1; i < layout->pieces[0] && i < layout->pieces[1]; i++) {
        if (is_same(&a[i], &b[i]))
            continue;
        if (!is_same(&a[i], a) || !is_same(&b[i], b) || (distance && i - last != distance))
            return false;
        distance = i - last;
        last = i;
    }
    return distance > 1;
}

enum layout_answer layout_judge(struct layout *layout, bool is_all)
{
    uint32_t whole[2];
    enum layout_answer answer = find_whole(layout, whole);
    if (answer != LAYOUT_OTHER_PIECES)
        return answer;
    enum evidence one_iteration = is_one_iteration(layout, whole);
    if (one_iteration == REFUTED)
        return LAYOUT_NEVER;
    if (is_permutation(layout, whole))
        answer = LAYOUT_OTHER_ORDER;
    if (one_iteration == UNKNOWN) {
        enum sequel sequel = sequel_of(layout, whole);
        if (answer == LAYOUT_OTHER_ORDER && whole[0] < ORDER_PIECES)
            return LAYOUT_NEVER; /* two calls swapped are two calls swapped */
        if (answer == LAYOUT_OTHER_PIECES && is_count_in_place(layout))
            return LAYOUT_NEVER;
        if (sequel == ELSE || (sequel != IN_STEP && is_shift(layout, whole)))
            return LAYOUT_NEVER;
        if (sequel == NOT_YET && !is_all)
            return LAYOUT_OPEN;
        if (sequel != IN_STEP && is_even(layout, 0, whole[0]) && is_even(layout, 1, whole[1]))
            answer = judge_even(layout, whole, is_all);
        if (answer == LAYOUT_OPEN || answer == LAYOUT_NEVER)
            return answer;
    }
    layout->whole[0] = whole[0];
    layout->whole[1] = whole[1];
    return answer;
}
