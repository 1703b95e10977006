/* rankset.h: a set of ranks, and how people read it: 0-6,8. */
#ifndef DDPCHECK_RANKSET_H
#define DDPCHECK_RANKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is the empty set. Grows on demand. */
struct rankset {
    uint64_t *bits;
    size_t words;
};

/* Adds rank >= 0. Returns 0, or -1 when memory is short. */
int rankset_add(struct rankset *set, int rank);
bool rankset_has(const struct rankset *set, int rank);
int rankset_count(const struct rankset *set);
/* The smallest rank >= from, or -1. */
int rankset_next(const struct rankset *set, int from);
/* Adds all ranks of `from` to `to`. Returns 0, or -1 when memory is short. */
int rankset_unite(struct rankset *to, const struct rankset *from);
/* Makes `to` equal to `from`. Returns 0, or -1 when memory is short. */
int rankset_copy(struct rankset *to, const struct rankset *from);
void rankset_free(struct rankset *set);

/* Writes "0-6,8" (cut with "..." if it does not fit; "none" if empty). Returns text. */
char *rankset_text(const struct rankset *set, char *text, size_t bytes);
/* The same as people read it, which nothing parses: many ranks at one distance as "5-1021 by 8",
 * and where few between them are not in it as "5-1021 by 8, not 613". Returns text. */
char *rankset_brief(const struct rankset *set, char *text, size_t bytes);
/* That with its noun, for a sentence: "rank 3", "ranks 0-6,8", "ranks 0-14 by 2", "127 of 128 ranks
 * (5-1021 by 8, not 613)". Returns text. */
char *rankset_words(const struct rankset *set, char *text, size_t bytes);
/* The whole text, which the caller frees; NULL when memory is short. */
char *rankset_text_new(const struct rankset *set);
/* Reads what rankset_text writes. Returns 0, or -1 if it is something else. */
int rankset_parse(struct rankset *set, const char *text);
/* Reads the first range of "0-6,8" and moves behind it, and so on until *text is empty. Returns 0,
 * or -1 if it is something else. */
int rankset_take_range(const char **text, int *first, int *last);

#endif
