/* layout.h: what two ranks of a communicator called from the place where they parted on, piece by
 * piece: whether it is the same whole. */
#ifndef DDPCHECK_LAYOUT_H
#define DDPCHECK_LAYOUT_H

#include "analyzer/model/model.h"

enum { LAYOUT_PIECES_MAX = 64 };

struct piece {
    struct signature signature;
    bool in_iteration;  /* `iteration` is known */
    uint64_t iteration; /* comparable between the two ranks */
};

struct layout {
    uint64_t number; /* of the first piece */
    int rank[2]; /* in the communicator: one of most of the ranks that had come, and the one that
                    differs */
    struct piece piece[2][LAYOUT_PIECES_MAX];
    uint32_t pieces[2];
    uint32_t finding;
    uint32_t reported; /* as struct divergence has them */
    bool stale;
    bool other_order;  /* once found */
    uint32_t whole[2]; /* once found: pieces of each side that make the same whole */
};

enum layout_answer { LAYOUT_OPEN, LAYOUT_OTHER_PIECES, LAYOUT_OTHER_ORDER, LAYOUT_NEVER };

/* Whether the pieces so far make one whole on both ranks, and no other reason is likelier: a call
 * too many or too few shifts the whole sequence. is_all: no more pieces will come. */
enum layout_answer layout_judge(struct layout *layout, bool is_all);

#endif
