/* ranks.h: the ranks of a job, and the operations and activities of their open iterations. For
 * analyzer/speed. */
#ifndef DDPCHECK_SPEED_RANKS_H
#define DDPCHECK_SPEED_RANKS_H

#include "analyzer/speed/speed.h"

enum {
    OPEN_ITERATIONS = 64
}; /* a rank that is further ahead of its peers is closed without them */

struct speed_operation {
    uint64_t iteration;
    uint64_t issued_ns, started_ns, waited_ns,
        done_ns;      /* waited: until then it waited for others */
    uint64_t busy_ns; /* until then the rank computes, if nothing waits for its end: followed.c */
    struct speed_rank *last; /* of the members the one that arrived last, and its operation there */
    uint64_t last_serial;
    struct speed_comm *comm;
    uint64_t number;    /* of its communicator, or of messages between the two */
    uint64_t jumps;     /* its process's, when it was passed */
    int32_t self, peer; /* in its communicator; peer: of a message, else -1 */
    float bytes;
    struct issued before_it; /* struct passed's */
    bool gathers;            /* parameters or the like: AllGather */
    bool sends, goes_up;     /* of a message: from this rank; to the larger of the two */
    bool stands_for;         /* of the members' operations the one that counts the transfer */
    bool resolved;           /* its durations on all members are known, or will never be */
};

/* Compute, from activities. */
struct speed_span {
    uint64_t iteration, begin_ns, end_ns;
    uint32_t count; /* kernels */
    bool is_communication;
};

/* The rank that the process (and device, if it holds several) drives. NULL with
 * analyzer->failed. */
struct speed_rank *speed_rank_get(struct analyzer *analyzer, const struct process *process,
                                  int device);
/* Adds an operation; returns its serial number, from 1, or 0 with analyzer->failed. */
uint64_t speed_rank_add(struct analyzer *analyzer, struct speed_rank *rank, struct speed_comm *comm,
                        const struct passed *passed);
/* Its iterations are not named, and how many operations one has is not known yet. */
static inline bool speed_rank_holds(const struct speed_rank *rank)
{
    return !rank->named && !rank->round;
}
/* Whether the rank's rounds are counted by operations like this one. */
bool speed_is_counted(const struct speed_rank *rank, const struct speed_operation *operation);
/* The iteration of its next operation. */
uint64_t speed_round_number(struct speed_rank *rank, const struct speed_operation *operation);
/* An iteration has `round` of the operations that count. What the rank holds gets its iterations.
 * `last`: which of its first `round` operations is the last of one, if a marker counts. */
void speed_number_held(struct speed_rank *rank, uint64_t round, size_t last);
/* Neither a barrier nor the mean of a few numbers, as far as sizes are known. */
bool speed_is_work(const struct speed_operation *operation);
/* Whether all ranks that hold operations have a communicator that marks iterations: then rounds are
 * counted by it. */
bool speed_choose_markers(struct speed *speed);
void speed_forget_markers(struct speed *speed);
/* `others`: how many other operations are behind each of a marker's. Whether these numbers repeat
 * every `distance` operations: on average they differ by `percent` % at most, or most do not
 * differ. */
bool speed_others_repeat(const double *others, size_t count, size_t distance, double percent);
/* Finds how many operations an iteration has where the program names none, if enough are known or,
 * with `is_end`, will ever be. */
void speed_find_rounds(struct analyzer *analyzer, bool is_end);
/* Seconds of a communicator's transfer in an iteration. 0, or -1 (ENOMEM). */
int speed_comm_add_transfer(struct speed_comm *comm, uint64_t iteration, double seconds);
/* NULL: its iteration was closed without it. */
struct speed_operation *speed_operation_find(struct speed_rank *rank, uint64_t serial);
/* Closes iterations whose operations are all resolved, of all ranks and the oldest first; with
 * `all` also others. */
void speed_close(struct analyzer *analyzer, bool all);
/* Those of one rank, which is far ahead of its peers, or with `all` needs the room. */
void speed_rank_close(struct analyzer *analyzer, struct speed_rank *rank, bool all);
/* Adds to the sums of a kernel's name (a string id), in the iteration if that is known. Notes want
 * of memory in the analyzer. */
void speed_kernel_add(struct analyzer *analyzer, struct speed_rank *rank, uint64_t name,
                      uint64_t iteration, const struct speed_kernel_sum *more);
/* What ran in the iterations [first, end), as far as that is known, else in all. */
struct speed_kernel_sum speed_kernel_between(const struct speed_rank *rank,
                                             const struct speed_kernel *kernel, uint64_t first,
                                             uint64_t end);
void speed_kernels_free(struct speed_rank *rank);
/* Whether its operations are placed where they were issued: when they began is not known. */
bool speed_is_placed(const struct speed_rank *rank);
/* Such ranks' iterations below `closed` become as long as the median one's. 0, or -1 (ENOMEM). */
int speed_level(struct speed *speed, uint64_t closed);
void speed_rank_free(struct speed_rank *rank);

#endif
