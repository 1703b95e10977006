/* payloads.h: what operations sent and left behind, as hashes (ddpcheck run --hash), gathered from
 * all ranks.
 *
 * An operation's payload is kept from the first rank's call until each rank has reported all its
 * hashes, and then given to the checks and dropped. What never becomes complete (hashes were lost,
 * a rank does not hash, ...) is given as it is when many later ones are through, or too many are
 * kept: memory follows the lag, and what is not known is not compared. */
#ifndef DDPCHECK_PAYLOADS_H
#define DDPCHECK_PAYLOADS_H

#include "analyzer/engine.h"

enum {
    PAYLOADS_CELLS_MAX = 1 << 17, /* (operation, rank) pairs kept of one communicator */
    PAYLOADS_MIN = 4, /* but that many operations at least; a communicator so large that these are
                         too many is left out */
    PAYLOADS_MAX = 1024,
    PAYLOADS_LAG = 64 /* an operation that many numbers behind a complete one is given as it is */
};

/* One rank's. */
struct payload_cell {
    struct member *member; /* NULL: its call was not seen (yet) */
    struct site site;
    uint64_t hash[HASH_WHATS];          /* 0: not known */
    uint32_t nans, infs;                /* of HASH_SEND_BEFORE or HASH_NAMED */
    uint8_t expects, reported, uniform; /* bits by hash_what */
    uint64_t bytes;                     /* HASH_NAMED */
    uint64_t before; /* HASH_NAMED: the number of the member's next collective then */
};

enum payload_kind { PAYLOAD_COLLECTIVE, PAYLOAD_MESSAGE, PAYLOAD_NAMED };

struct payload_key {
    uint64_t kind; /* enum payload_kind */
    uint64_t name; /* NAMED: string id; MESSAGE: index of the process */
    uint64_t
        number; /* COLLECTIVE: its number; MESSAGE: serial of its ENTER; NAMED: 0,1,2,.. by name */
};

struct payload {
    struct payload_key key;
    struct comm *comm;
    struct signature signature; /* of the first that came */
    bool mixed;                 /* others' differ: their payloads can't be compared */
    uint64_t number;            /* MESSAGE: of the send or receive; else as in the key */
    uint32_t cells, complete;
    UT_hash_handle hh;
    struct payload_cell cell[]; /* by rank in comm; one for a message */
};

/* Ranks with the same hash. */
struct payload_group {
    uint64_t hash;
    uint32_t first; /* its lowest rank's cell */
    uint32_t ranks;
};
enum { PAYLOAD_GROUPS_MAX = FINDING_SIDES_MAX };

/* Groups the cells that reported `what` (with any hash), largest group first, then by lowest rank;
 * more than PAYLOAD_GROUPS_MAX different ones are counted with the last. Returns how many groups
 * there are. */
int payload_groups(const struct payload *payload, enum hash_what what,
                   struct payload_group groups[PAYLOAD_GROUPS_MAX]);
/* The group of a cell, as payload_groups made them; -1 if it reported nothing. */
int payload_group_of(const struct payload_cell *cell, enum hash_what what,
                     const struct payload_group *groups, int count);

/* The payloads of one communicator. */
struct payloads {
    struct payload *table; /* in the order of their coming */
    uint32_t count;
};
void payloads_free(struct payloads *payloads);

/* An operation was issued: its payload is kept if its process hashes. */
void payloads_note_operation(struct analyzer *analyzer, const struct operation *operation);
/* Gives what is still incomplete to the checks. */
void payloads_finish(struct analyzer *analyzer, struct comm *comm);
/* notice_hash, notice_hashing, ddpcheck_hash. ENGINE_*. */
int payloads_feed_hash(struct event *event);
int payloads_feed_hashing(struct event *event);
int payloads_feed_named(struct event *event);

#endif
