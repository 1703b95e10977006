/* alignment.h: where two long sequences differ, as people would say it: this was put in, that left
 * out.
 *
 * The sequences are 64-bit words (hashes of what is compared), read once, in memory that does not
 * grow with them. Where they part, the shortest script of insertions and deletions is sought in a
 * window (Myers, "An O(ND) Difference Algorithm and Its Variations", 1986), so that one extra word
 * is one difference and not one for each word behind it. Where little of the window is alike, a
 * long insertion is looked for: the nearest place, ALIGNMENT_FAR words ahead at most, from which
 * both go on alike. */
#ifndef DDPCHECK_ALIGNMENT_H
#define DDPCHECK_ALIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

enum { ALIGNMENT_WINDOW = 512, ALIGNMENT_FAR = 65536, ALIGNMENT_RUN = 16 };

/* Gives the next word: 1, 0 at the end, -1 if it can't be had. */
typedef int alignment_next(void *context, uint64_t *word);

/* Words [at, at + count) of each side stand for each other; one count may be 0. Before and behind,
 * the sides are alike. */
struct hunk {
    uint64_t at[2], count[2];
    bool open; /* nothing was found behind it from which they go on alike: it reaches to the ends */
};

/* Calls `on_hunk` for each difference in order; it returns 0, or something else to stop. Returns 0,
 * 1 if it was stopped, -1 if a side's next gave -1 or memory is short (errno = ENOMEM). `length`,
 * if not NULL: words of each side that were read. */
int alignment_run(alignment_next *next, void *const context[2],
                  int (*on_hunk)(void *user, const struct hunk *hunk), void *user,
                  uint64_t length[2]);

#endif
