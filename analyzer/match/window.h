/* window.h: the operations of one communicator that not every member has passed yet.
 *
 * A ring of slots by operation number. It grows with the distance between the fastest and the
 * slowest member and shrinks as the slowest catches up: memory follows the lag, not the length of
 * the job. Past WINDOW_MAX numbers the oldest slots are condensed to one hash per block (at most
 * BLOCKS_MAX blocks, the oldest go), so a member that is silent for ever costs a bounded amount;
 * when it comes back its own hash is compared with the block's. While only members that were never
 * seen hold it back (their ranks may have no trace at all) the limit is WINDOW_UNSEEN. */
#ifndef DDPCHECK_WINDOW_H
#define DDPCHECK_WINDOW_H

#include "analyzer/model/model.h"

enum { WINDOW_MAX = 65536, WINDOW_UNSEEN = 8192, BLOCKS_MAX = 4096, BLOCK_OPERATIONS = 1024 };

/* Members that made the same call at one number. */
struct variant {
    struct signature signature;
    struct site site; /* of the first that came */
    struct rankset
        ranks; /* ranks in the communicator; kept only where there are several variants */
};

struct slot {
    uint32_t passed; /* members that are past this number */
    uint32_t variants;
    struct variant first;
    struct variant *more; /* variants - 1 */
};

enum window_result {
    WINDOW_MATCHES,
    WINDOW_DIFFERS,      /* *slot has several variants */
    WINDOW_BLOCK_DIFFERS /* somewhere between block_first and number, long ago */
};
struct window_answer {
    enum window_result result;
    struct slot *slot; /* NULL if the number has left the window; valid until the next call */
    bool fresh;        /* the slot had one variant before */
    uint64_t block_first;
};

/* The member issues its operation `number`. 0, or -1 with errno = ENOMEM. */
int window_pass(struct comm *comm, struct member *member, uint64_t number,
                const struct signature *signature, const struct site *site,
                struct window_answer *answer);

/* The member has issued what is below `next`, whatever it was: nothing is compared. 0, or -1 with
 * errno = ENOMEM. */
int window_skip(struct comm *comm, struct member *member, uint64_t next);

/* The slot of a number, NULL if no member is there yet or all have passed. */
struct slot *window_slot(const struct comm *comm, uint64_t number);
/* All members have issued what is below. */
uint64_t window_base(const struct comm *comm);

/* Variant i of a slot, the first that came is 0. */
struct variant *slot_variant(struct slot *slot, uint32_t i);
/* The one that `rank` is in, or -1. The slot has several variants. */
int slot_variant_of(struct slot *slot, int rank);
int slot_copy(struct slot *to, struct slot *from); /* 0 or -1 (ENOMEM) */
void slot_clear(struct slot *slot);

void window_shrink(struct comm *comm); /* gives back the memory that it does not need now */
void window_free(struct window *window);

#endif
