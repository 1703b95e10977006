/* first_divergence.c: the cheapest shift of one sequence of calls against another. */
#include "lib/finding/first_divergence.h"

#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/invariant.h"

/* Costs are in halves. The numbers were chosen by what random programs and the traces of correct
 * ones gave: tests/origin/compare.py counts both again. */
enum {
    COST_CALL = 2,     /* of a pair of lines that is new, and of a call that one member is ahead */
    COST_HANG = 1,     /* that one member has made more calls than the other */
    GAIN_CERTAIN = 2,  /* so much cheaper a claim has to be */
    GAIN_POSSIBLE = 1, /* the same, in a program that has shown no other lines before */
    CANDIDATES_MAX = 24,
    SHIFT_MAX = 8,
    MET = 1,      /* stamp of the pairs that met without a shift */
    SLOTS = 4096, /* a power of two, and twice as many as there are pairs */
};

/* Two calls that met. */
struct pair_slot {
    uint64_t key;
    uint32_t stamp; /* of the search's that put it there: others' slots are empty */
    uint32_t first; /* index at which they met first */
};

struct shift_candidate {
    size_t at;
    int cost; /* of the new pairs before it */
};

struct claim {
    size_t at;
    int shift, cost, matches;
};

struct divergence_search {
    struct call_sequence a, b;
    int plain; /* cost of the lines alone */
    struct shift_candidate candidate[CANDIDATES_MAX];
    int candidates;
    uint32_t stamp;
    struct pair_slot met[SLOTS], shifted[SLOTS]; /* without a shift, and under the one tried now */
};

bool calls_are_equal(const struct call_symbol *a, const struct call_symbol *b)
{
    return a->signature == b->signature && a->lines == b->lines;
}

/* The slot of the pair, or the empty one where it belongs. */
static struct pair_slot *find_pair(struct pair_slot *slots, const struct call_symbol *a,
                                   const struct call_symbol *b, uint32_t stamp)
{
    uint64_t key = hash_word(hash_word(0, a->signature), a->lines);
    key = hash_word(hash_word(key, b->signature), b->lines);
    struct pair_slot *slot = &slots[key % SLOTS];
    while (slot->stamp == stamp && slot->key != key)
        slot = &slots[(size_t)(slot - slots + 1) % SLOTS];
    if (slot->stamp != stamp)
        slot->key = key;
    return slot;
}

/* Returns false if the pair was there already. */
static bool note_pair(struct pair_slot *slots, const struct call_symbol *a,
                      const struct call_symbol *b, uint32_t stamp, size_t index)
{
    struct pair_slot *slot = find_pair(slots, a, b, stamp);
    if (slot->stamp == stamp)
        return false;
    slot->stamp = stamp;
    slot->first = (uint32_t)index;
    return true;
}

/* A candidate is a new pair behind calls that agree, or whose pair is usual. */
static void find_candidates(struct divergence_search *search)
{
    size_t count = search->a.count < search->b.count ? search->a.count : search->b.count;
    bool agree_before = false;
    search->plain = search->a.count != search->b.count ? COST_HANG : 0;
    int hang = search->plain;
    for (size_t i = 0; i < count; i++) {
        const struct call_symbol *a = &search->a.call[i], *b = &search->b.call[i];
        bool is_new = !calls_are_equal(a, b) && note_pair(search->met, a, b, MET, i);
        if (is_new && agree_before && search->candidates < CANDIDATES_MAX)
            search->candidate[search->candidates++] =
                (struct shift_candidate){.at = i, .cost = search->plain - hang};
        if (is_new)
            search->plain += COST_CALL;
        agree_before = !is_new;
    }
}

static bool is_usual(struct divergence_search *search, const struct call_symbol *a,
                     const struct call_symbol *b, size_t at)
{
    const struct pair_slot *slot = find_pair(search->met, a, b, MET);
    return slot->stamp == MET && slot->first < at;
}

/* What it costs that from the candidate on `b` is `shift` calls ahead. Returns false where it is
 * more than `most`, or nothing behind it matches. */
static bool try_shift(struct divergence_search *search, const struct shift_candidate *candidate,
                      int shift, int most, struct claim *claim)
{
    size_t ahead_a = shift > 0 ? (size_t)shift : 0;
    size_t ahead_b = shift < 0 ? (size_t)-shift : 0;
    *claim = (struct claim){
        .at = candidate->at, .shift = shift, .cost = candidate->cost + COST_CALL * abs(shift)};
    search->stamp++;
    for (size_t i = candidate->at;
         i + ahead_a < search->a.count && i + ahead_b < search->b.count && claim->cost <= most;
         i++) {
        const struct call_symbol *a = &search->a.call[i + ahead_a];
        const struct call_symbol *b = &search->b.call[i + ahead_b];
        if (calls_are_equal(a, b))
            claim->matches++;
        else if (a->signature != b->signature ||
                 (!is_usual(search, a, b, candidate->at) &&
                  note_pair(search->shifted, a, b, search->stamp, i)))
            claim->cost += COST_CALL;
    }
    return claim->cost <= most && claim->matches > 0;
}

static bool is_better_claim(const struct claim *claim, const struct claim *best)
{
    return !best->matches || claim->cost < best->cost ||
           (claim->cost == best->cost && claim->matches > best->matches);
}

static struct claim find_claim(struct divergence_search *search)
{
    struct claim best = {0}, claim;
    for (int i = 0; i < search->candidates; i++) {
        const struct shift_candidate *candidate = &search->candidate[i];
        int most = search->plain - (candidate->cost ? GAIN_CERTAIN : GAIN_POSSIBLE);
        for (int step = 1; step <= SHIFT_MAX; step++)
            for (int shift = step; shift >= -step; shift -= 2 * step)
                if (try_shift(search, candidate, shift, most, &claim) &&
                    is_better_claim(&claim, &best))
                    best = claim;
    }
    return best;
}

/* As far the other way costs at most one call more: a round of two calls from which one is left out
 * looks like one in which one more was made. */
static bool has_opposite(struct divergence_search *search, const struct claim *best)
{
    struct claim claim;
    int i = 0;
    while (search->candidate[i].at != best->at)
        i++;
    return try_shift(search, &search->candidate[i], -best->shift, best->cost + COST_CALL, &claim);
}

struct first_divergence first_divergence_find(const struct call_sequence *a,
                                              const struct call_sequence *b)
{
    struct first_divergence found = {0};
    struct divergence_search *search = calloc(1, sizeof *search);
    invariant(a->count <= FIRST_DIVERGENCE_CALLS_MAX && b->count <= FIRST_DIVERGENCE_CALLS_MAX,
              "no more calls are compared than the table of pairs has room for");
    if (!search)
        return found;
    search->a = *a;
    search->b = *b;
    find_candidates(search);
    struct claim best = find_claim(search);
    if (best.matches)
        found = (struct first_divergence){
            .is_found = true,
            .is_certain = best.cost + GAIN_CERTAIN <= search->plain,
            .at = best.at,
            .shift = best.shift,
            .is_either_way = has_opposite(search, &best),
        };
    free(search);
    return found;
}

static bool met_before(const struct call_symbol *a, const struct call_symbol *b, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (calls_are_equal(&a[i], &a[at]) && calls_are_equal(&b[i], &b[at]))
            return true;
    return false;
}

size_t first_divergence_last_run(const struct call_symbol *a, const struct call_symbol *b,
                                 size_t count)
{
    size_t at = count;
    while (at && !calls_are_equal(&a[at - 1], &b[at - 1]))
        at--;
    return at && at < count && !met_before(a, b, at) ? at : count;
}
