/* split_groups.h: groups of PyTorch that their ranks create in another order; part of DC109.
 *
 * Rule: every rank must call torch.distributed.new_group for each group, in the same order, with
 * the same ranks. With init_process_group(device_id=...) PyTorch splits the default group's
 * communicator for each new_group. A rank that passes another color than the rest of its group gets
 * a communicator without them: nothing hangs, and what they reduce is wrong. The color that PyTorch
 * passes is a hash of the group's ranks, so it shows which ranks the caller meant. From 2.15 on
 * (its communicators are named by numbers) the color is the group's lowest rank, and the key the
 * caller's place in the group. */
#ifndef DDPCHECK_SPLIT_GROUPS_H
#define DDPCHECK_SPLIT_GROUPS_H

#include "analyzer/check.h"
#include "analyzer/model/model.h"

enum { SPLITS_KEPT = 16 };

/* What a member of the parent gave one split. */
struct split_call {
    const struct member *member; /* NULL: it has not called this split */
    int32_t color, key;
    struct site site;
};

/* The splits of a communicator that some members have not called, or whose groups are not what
 * PyTorch meant. Zero-initialize. */
struct split_groups {
    struct kept_split {
        uint32_t ordinal;
        int calls, ranks;
        struct split_call *call; /* by the rank in the parent; NULL: unused */
    } kept[SPLITS_KEPT];
    bool reported;
};

/* A member called ncclCommSplit: its ENTER record. */
void split_groups_add(struct analyzer *analyzer, struct split_groups *groups,
                      const struct member *member, const struct record *record,
                      const struct site *site);
void split_groups_free(struct split_groups *groups);

#endif
