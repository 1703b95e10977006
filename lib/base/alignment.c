/* alignment.c: aligns two long sequences and lists their differences. */
#include "lib/base/alignment.h"

#include <stdlib.h>
#include <string.h>

enum { DISTANCE_MAX = 2 * ALIGNMENT_WINDOW, BUCKETS = 1 << 17 };

/* One sequence: what of it was read and not passed yet. */
struct alignment_side {
    void *context;
    uint64_t *word;  /* ALIGNMENT_FAR + ALIGNMENT_WINDOW */
    int count, at;   /* words [at, count) are ahead */
    uint64_t passed; /* words before word[at] */
    bool ended;
};

struct alignment {
    alignment_next *next;
    struct alignment_side side[2];
    int (*on_hunk)(void *user, const struct hunk *hunk);
    void *user;
    struct hunk hunk; /* begun and not reported: words are added to it */
    bool in_hunk;
    /* furthest[d]: after d edits, by diagonal: how far in side 0. Kept for each d to walk back. */
    int32_t *furthest;
    uint8_t *edit; /* the script of a window: enum edit */
    int edits;
    int32_t *bucket; /* of runs of words, for far places */
};

enum edit { EDIT_KEEP, EDIT_TAKE_0, EDIT_TAKE_1 };
enum { SIDE_WORDS = ALIGNMENT_FAR + ALIGNMENT_WINDOW };

static int ahead(const struct alignment_side *side)
{
    return side->count - side->at;
}

static const uint64_t *words(const struct alignment_side *side)
{
    return side->word + side->at;
}

/* Reads until `wanted` words are ahead or the side ends. Returns 0 or -1. */
static int fill_window(struct alignment *run, struct alignment_side *side, int wanted)
{
    if (ahead(side) >= wanted || side->ended)
        return 0;
    if (side->at + wanted > SIDE_WORDS) {
        memmove(side->word, words(side), (size_t)ahead(side) * sizeof *side->word);
        side->count = ahead(side);
        side->at = 0;
    }
    while (ahead(side) < wanted && !side->ended) {
        int got = run->next(side->context, &side->word[side->count]);
        if (got < 0)
            return -1;
        side->count += got > 0;
        side->ended = got == 0;
    }
    return 0;
}

static void drop_words(struct alignment_side *side, int count)
{
    side->at += count;
    side->passed += (uint64_t)count;
}

/* Reports the hunk that is under way. Returns 0, or 1 to stop. */
static int end_hunk(struct alignment *run)
{
    if (!run->in_hunk)
        return 0;
    run->in_hunk = false;
    return run->on_hunk(run->user, &run->hunk) ? 1 : 0;
}

/* The next `count` words of a side are not on the other. */
static void add_to_hunk(struct alignment *run, int which, int count)
{
    if (!run->in_hunk) {
        run->hunk = (struct hunk){.at = {run->side[0].passed, run->side[1].passed}};
        run->in_hunk = true;
    }
    run->hunk.count[which] += (uint64_t)count;
    drop_words(&run->side[which], count);
}

static int32_t *row(const struct alignment *run, int distance)
{
    /* Row d has diagonals -d .. d; it begins after those of the rows before it. */
    return run->furthest + (size_t)distance * (size_t)distance + distance;
}

/* The furthest place on `diagonal` with `distance` edits, before the words that are alike there. */
static int choose_step(const struct alignment *run, int distance, int diagonal)
{
    if (distance == 0)
        return 0;
    const int32_t *before = row(run, distance - 1);
    bool down = diagonal == -distance ||
                (diagonal != distance && before[diagonal - 1] < before[diagonal + 1]);
    return down ? before[diagonal + 1] : before[diagonal - 1] + 1;
}

/* Puts the script that leads to (x, y), the last word first, into `edit`. */
static void trace_path(struct alignment *run, int distance, int x, int y)
{
    run->edits = 0;
    for (int d = distance;; d--) {
        int diagonal = x - y, start = choose_step(run, d, diagonal);
        for (; x > start; x--, y--)
            run->edit[run->edits++] = EDIT_KEEP;
        if (d == 0)
            return;
        const int32_t *before = row(run, d - 1);
        bool down = diagonal == -d ||
                    (diagonal != d && before[diagonal - 1] < before[diagonal + 1]);
        run->edit[run->edits++] = down ? EDIT_TAKE_1 : EDIT_TAKE_0;
        if (down)
            y--;
        else
            x--;
    }
}

/* Finds the shortest script of the windows [0, n) and [0, m). Where a side goes on behind its
 * window, reaching its edge is enough, since what stands for it may lie behind the other's. */
static void align_window(struct alignment *run, int n, int m, bool to_both_ends)
{
    const uint64_t *a = words(&run->side[0]), *b = words(&run->side[1]);
    for (int d = 0; d <= n + m; d++) {
        int32_t *now = row(run, d);
        for (int diagonal = -d; diagonal <= d; diagonal += 2) {
            int x = choose_step(run, d, diagonal), y = x - diagonal;
            if (x > n || y > m || y < 0) { /* outside: no way leads on from here */
                now[diagonal] = x > n ? n + 1 : x;
                continue;
            }
            while (x < n && y < m && a[x] == b[y])
                x++, y++;
            now[diagonal] = x;
            if (to_both_ends ? x == n && y == m : x == n || y == m) {
                trace_path(run, d, x, y);
                return;
            }
        }
    }
}

static int count_kept(const struct alignment *run)
{
    int count = 0;
    for (int i = 0; i < run->edits; i++)
        count += run->edit[i] == EDIT_KEEP;
    return count;
}

/* Follows the script. Of a window behind which more comes the last quarter is left to the next one.
 */
static int follow_diagonals(struct alignment *run, int n, int m, bool to_both_ends)
{
    int x = 0, y = 0;
    for (int i = run->edits; i-- > 0;) {
        enum edit edit = run->edit[i];
        if (!to_both_ends && edit == EDIT_KEEP && (x > n * 3 / 4 || y > m * 3 / 4))
            break;
        x += edit != EDIT_TAKE_1;
        y += edit != EDIT_TAKE_0;
        if (edit != EDIT_KEEP) {
            add_to_hunk(run, edit == EDIT_TAKE_1, 1);
            continue;
        }
        if (end_hunk(run))
            return 1;
        drop_words(&run->side[0], 1);
        drop_words(&run->side[1], 1);
    }
    return 0;
}

static uint64_t run_hash(const uint64_t *at)
{
    uint64_t hash = 0;
    for (int i = 0; i < ALIGNMENT_RUN; i++)
        hash = (hash ^ at[i]) * 0x9e3779b97f4a7c15u + (hash >> 29);
    return hash ^ hash >> 32;
}

/* The nearest places from which both go on alike for ALIGNMENT_RUN words. False if there are none.
 */
static bool find_far(struct alignment *run, int *x, int *y)
{
    const struct alignment_side *a = &run->side[0], *b = &run->side[1];
    int best = INT32_MAX;
    memset(run->bucket, 0xff, BUCKETS * sizeof *run->bucket);
    for (int i = ahead(a) - ALIGNMENT_RUN; i >= 0; i--) /* the first of equal ones stays */
        run->bucket[run_hash(words(a) + i) % BUCKETS] = i;
    for (int j = 0; j + ALIGNMENT_RUN <= ahead(b) && j < best; j++) {
        int i = run->bucket[run_hash(words(b) + j) % BUCKETS];
        if (i < 0 || i + j >= best ||
            memcmp(words(a) + i, words(b) + j, ALIGNMENT_RUN * sizeof(uint64_t)))
            continue;
        best = i + j;
        *x = i;
        *y = j;
    }
    return best != INT32_MAX;
}

/* All that is left has nothing to do with each other. */
static int take_rest(struct alignment *run, bool open)
{
    for (int which = 0; which < 2; which++) {
        struct alignment_side *side = &run->side[which];
        do {
            if (ahead(side))
                add_to_hunk(run, which, ahead(side));
            if (fill_window(run, side, ALIGNMENT_WINDOW))
                return -1;
        } while (ahead(side));
    }
    run->hunk.open = open;
    return end_hunk(run);
}

/* At a place where the sides differ. */
static int realign(struct alignment *run)
{
    struct alignment_side *a = &run->side[0], *b = &run->side[1];
    int n = ahead(a), m = ahead(b);
    n = n < ALIGNMENT_WINDOW ? n : ALIGNMENT_WINDOW;
    m = m < ALIGNMENT_WINDOW ? m : ALIGNMENT_WINDOW;
    bool ends = a->ended && b->ended && n == ahead(a) && m == ahead(b);
    align_window(run, n, m, ends);
    int smaller = n < m ? n : m;
    if (ends || count_kept(run) * 4 >= smaller)
        return follow_diagonals(run, n, m, ends);
    int x, y;
    if (fill_window(run, a, ALIGNMENT_FAR) || fill_window(run, b, ALIGNMENT_FAR))
        return -1;
    if (find_far(run, &x, &y)) {
        add_to_hunk(run, 0, x);
        add_to_hunk(run, 1, y);
        return end_hunk(run);
    }
    if (count_kept(run) * 16 >= smaller)
        return follow_diagonals(run, n, m, ends);
    return take_rest(run, true);
}

static int walk(struct alignment *run)
{
    struct alignment_side *a = &run->side[0], *b = &run->side[1];
    for (;;) {
        if (fill_window(run, a, ALIGNMENT_WINDOW) || fill_window(run, b, ALIGNMENT_WINDOW))
            return -1;
        int result;
        if (!ahead(a) || !ahead(b))
            return take_rest(run, false);
        if (*words(a) == *words(b)) {
            result = end_hunk(run);
            drop_words(a, 1);
            drop_words(b, 1);
        } else {
            result = realign(run);
        }
        if (result)
            return result;
    }
}

int alignment_run(alignment_next *next, void *const context[2],
                  int (*on_hunk)(void *user, const struct hunk *hunk), void *user,
                  uint64_t length[2])
{
    struct alignment run = {.next = next, .on_hunk = on_hunk, .user = user};
    size_t rows = (size_t)(DISTANCE_MAX + 1) * (DISTANCE_MAX + 1) + DISTANCE_MAX + 1;
    run.furthest = calloc(rows, sizeof *run.furthest);
    run.edit = malloc(DISTANCE_MAX);
    run.bucket = malloc(BUCKETS * sizeof *run.bucket);
    for (int i = 0; i < 2; i++) {
        run.side[i].context = context[i];
        run.side[i].word = malloc(SIDE_WORDS * sizeof(uint64_t));
    }
    int result = -1;
    if (run.furthest && run.edit && run.bucket && run.side[0].word && run.side[1].word)
        result = walk(&run);
    for (int i = 0; i < 2; i++) {
        if (length)
            length[i] = run.side[i].passed + (uint64_t)ahead(&run.side[i]);
        free(run.side[i].word);
    }
    free(run.furthest);
    free(run.edit);
    free(run.bucket);
    return result;
}
