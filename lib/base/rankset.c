/* rankset.c: keeps sets of ranks and prints them as ranges. */
#include "lib/base/rankset.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/invariant.h"

enum { RANK_LIMIT = 1 << 24 }; /* no job is larger; a parsed number above it is noise */

int rankset_add(struct rankset *set, int rank)
{
    if (rank < 0 || rank >= RANK_LIMIT)
        return -1;
    if (!ARRAY_RESERVE(set->bits, set->words, rank / 64 + 1))
        return -1;
    set->bits[rank / 64] |= UINT64_C(1) << (rank % 64);
    invariant(rankset_has(set, rank), "a set has the rank that was added");
    return 0;
}

bool rankset_has(const struct rankset *set, int rank)
{
    return rank >= 0 && (uint32_t)rank / 64 < set->words &&
           (set->bits[rank / 64] >> (rank % 64) & 1);
}

int rankset_count(const struct rankset *set)
{
    int count = 0;
    for (uint32_t i = 0; i < set->words; i++)
        count += __builtin_popcountll(set->bits[i]);
    return count;
}

int rankset_next(const struct rankset *set, int from)
{
    if (from < 0)
        from = 0;
    for (uint32_t word = (uint32_t)from / 64; word < set->words; word++) {
        uint64_t bits = set->bits[word];
        if (word == (uint32_t)from / 64)
            bits &= ~UINT64_C(0) << (from % 64);
        if (bits)
            return (int)(word * 64) + __builtin_ctzll(bits);
    }
    return -1;
}

int rankset_unite(struct rankset *to, const struct rankset *from)
{
    int failed = 0;
    for (int rank = -1; (rank = rankset_next(from, rank + 1)) >= 0;)
        failed |= rankset_add(to, rank);
    return failed;
}

int rankset_copy(struct rankset *to, const struct rankset *from)
{
    struct rankset copy = {0};
    if (from->words) {
        copy.bits = malloc(from->words * sizeof *copy.bits);
        if (!copy.bits)
            return -1;
        memcpy(copy.bits, from->bits, from->words * sizeof *copy.bits);
        copy.words = from->words;
    }
    rankset_free(to);
    *to = copy;
    return 0;
}

void rankset_free(struct rankset *set)
{
    free(set->bits);
    *set = (struct rankset){0};
}

char *rankset_text(const struct rankset *set, char *text, size_t bytes)
{
    size_t used = 0;
    int first = rankset_next(set, 0);
    if (first < 0) {
        snprintf(text, bytes, "none");
        return text;
    }
    text[0] = 0;
    while (first >= 0) {
        int last = first;
        while (rankset_has(set, last + 1))
            last++;
        char piece[32];
        int n = snprintf(piece, sizeof piece, last > first ? "%s%d-%d" : "%s%d", used ? "," : "",
                         first, last);
        if (used + (size_t)n + 4 >= bytes) {
            snprintf(text + used, bytes - used, "...");
            return text;
        }
        memcpy(text + used, piece, (size_t)n + 1);
        used += (size_t)n;
        first = rankset_next(set, last + 1);
    }
    return text;
}

/* Ranks at one distance, few of them left out. */
struct rank_stride {
    int first, last, step;
    int left_out; /* how many between the first and the last are not in the set */
};

/* False: a list of ranges is as short, or shows more. */
static bool find_stride(const struct rankset *set, struct rank_stride *stride)
{
    enum { RANGES_LEAST = 5, LEFT_OUT_MOST = 3, OF_ONE_LEFT_OUT = 8 };
    int count = 0, before = -1;
    *stride = (struct rank_stride){.first = rankset_next(set, 0), .step = RANK_LIMIT};
    for (int rank = stride->first; rank >= 0; rank = rankset_next(set, rank + 1), count++) {
        if (before >= 0 && rank - before < stride->step)
            stride->step = rank - before;
        stride->last = before = rank;
    }
    if (count < RANGES_LEAST || stride->step < 2)
        return false;
    for (int rank = stride->first; rank >= 0; rank = rankset_next(set, rank + 1))
        if ((rank - stride->first) % stride->step)
            return false;
    stride->left_out = (stride->last - stride->first) / stride->step + 1 - count;
    return stride->left_out <= LEFT_OUT_MOST && OF_ONE_LEFT_OUT * stride->left_out <= count;
}

char *rankset_brief(const struct rankset *set, char *text, size_t bytes)
{
    struct rank_stride stride;
    if (!find_stride(set, &stride))
        return rankset_text(set, text, bytes);
    const char *before = ", not ";
    int used = snprintf(text, bytes, "%d-%d by %d", stride.first, stride.last, stride.step);
    for (int rank = stride.first; stride.left_out && rank < stride.last; rank += stride.step)
        if (!rankset_has(set, rank) && (size_t)used < bytes) {
            used += snprintf(text + used, bytes - (size_t)used, "%s%d", before, rank);
            before = ",";
        }
    return text;
}

char *rankset_words(const struct rankset *set, char *text, size_t bytes)
{
    struct rank_stride stride;
    int count = rankset_count(set), used;
    bool names_left_out = find_stride(set, &stride) && stride.left_out;
    if (names_left_out)
        used = snprintf(text, bytes, "%d of %d ranks (", count, count + stride.left_out);
    else
        used = snprintf(text, bytes, count == 1 ? "rank " : "ranks ");
    if ((size_t)used >= bytes)
        return text;
    rankset_brief(set, text + used, bytes - (size_t)used);
    if (names_left_out && strlen(text) + 1 < bytes)
        strcat(text, ")");
    return text;
}

char *rankset_text_new(const struct rankset *set)
{
    enum { RANGE_BYTES = sizeof ",16777215-16777215", END_BYTES = 16 };
    size_t bytes = END_BYTES;
    for (int rank = 0; (rank = rankset_next(set, rank)) >= 0; bytes += RANGE_BYTES)
        while (rankset_has(set, rank))
            rank++;
    char *text = malloc(bytes);
    return text ? rankset_text(set, text, bytes) : NULL;
}

static bool parse_rank(const char **text, int *rank)
{
    if (!isdigit((unsigned char)**text))
        return false;
    char *end;
    long value = strtol(*text, &end, 10);
    if (value < 0 || value >= RANK_LIMIT)
        return false;
    *text = end;
    *rank = (int)value;
    return true;
}

int rankset_take_range(const char **text, int *first, int *last)
{
    if (!parse_rank(text, first))
        return -1;
    *last = *first;
    if (**text == '-' && ((*text)++, !parse_rank(text, last)))
        return -1;
    if (**text == ',' && (*text)[1])
        (*text)++;
    else if (**text)
        return -1;
    return 0;
}

int rankset_parse(struct rankset *set, const char *text)
{
    if (strcmp(text, "none") == 0)
        return 0;
    do {
        int first, last;
        if (rankset_take_range(&text, &first, &last) < 0)
            return -1;
        for (int rank = first; rank <= last; rank++)
            if (rankset_add(set, rank) < 0)
                return -1;
    } while (*text);
    return 0;
}
