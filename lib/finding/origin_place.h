/* origin_place.h: two members whose calls are compared, and the lines of their calls in words. */
#ifndef DDPCHECK_ORIGIN_PLACE_H
#define DDPCHECK_ORIGIN_PLACE_H

#include "lib/finding/finding.h"
#include "lib/finding/member_calls.h"
#include "lib/trace/site.h"

/* Where a member made a call. */
struct origin_place {
    struct frame frame[SITE_FRAMES_MAX]; /* the program's own, innermost first */
    int frames, shown;                   /* shown: which of them people look at, -1: none */
    char where[512];                     /* "at attention() train.py:11" */
};

/* The sides as subjects of a sentence: "rank 1", "the others". */
struct origin_names {
    char odd[160], other[160];
    bool is_one, other_is_one; /* rank */
};

/* A member of each of two sides of a finding; side `odd` has fewer ranks. */
struct origin_pair {
    struct trace *trace;
    const struct finding *finding;
    const struct member_calls *odd, *other; /* calls of the same numbers, their lines known */
    struct origin_names names;
};

void origin_name_sides(struct origin_pair *pair, int odd, int other);
/* Reads the frames of a call. Returns false if no line of the program is known. */
bool origin_read_place(struct origin_place *place, struct trace *trace,
                       const struct member_calls *calls, const struct made_at *at);
/* Writes its words; is_caller: the frame that is shown is named after what it calls, "at
 * attention() called at train.py:30"; PyTorch's operation has its name, "in barrier() at
 * train.py:12". */
void origin_write_place(struct origin_place *place, struct trace *trace,
                        const struct member_calls *calls, const struct made_at *at, bool is_caller);
/* Reads and writes those of the calls with that index: [0] the odd member's. Where both would read
 * the same, the outermost frames at which they differ are shown. Returns false: there are none. */
bool origin_read_places(struct origin_place place[2], const struct origin_pair *pair, size_t index);

#endif
