/* split_groups.h: groups of PyTorch that their ranks create in another order; part of DC109.
 *
 * Rule: every rank must call torch.distributed.new_group for each group, in the same order, with
 * the same ranks. With init_process_group(device_id=...) PyTorch splits the default group's
 * communicator for each new_group. A rank that passes another color than the rest of its group gets
 * a communicator without them: nothing hangs, and what they reduce is wrong. The color that PyTorch
 * passes is a hash of the group's ranks, so it shows which ranks the caller meant. */
#ifndef DDPCHECK_SPLIT_GROUPS_H
#define DDPCHECK_SPLIT_GROUPS_H

#include "analyzer/check.h"
#include "analyzer/model/model.h"

enum { SPLITS_KEPT = 16 };

/* What a member of the parent gave one split. */
struct split_call {
    const struct member *member; /* NULL: it has not called this split */
    int32_t color;
    struct site site;
};

/* The splits of a communicator that not all its members have called, or of which a group is not
 * what PyTorch meant. Zero-initialize. */
struct split_groups {
    struct kept_split {
        uint32_t ordinal;
        int calls, ranks;
        struct split_call *call; /* by the rank in the parent; NULL: unused */
    } kept[SPLITS_KEPT];
    bool reported;
};

extern const char split_groups_todo[];

/* A member called ncclCommSplit for the ordinal-th time. */
void split_groups_add(struct analyzer *analyzer, struct split_groups *groups,
                      const struct member *member, uint32_t ordinal, int32_t color,
                      const struct site *site);
void split_groups_free(struct split_groups *groups);

/* The color that PyTorch gives a group of these ranks of the default group. */
int32_t split_color(const struct rankset *ranks);

#endif
