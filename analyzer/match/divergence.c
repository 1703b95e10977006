/* divergence.c: keeps the first operation in which the members of a communicator differ. */
#include "analyzer/match/divergence.h"

#include <stdlib.h>

#include "analyzer/model/comm.h"
#include "lib/base/invariant.h"

enum { SHIFT_MAX = 3, SHIFT_PROOF = 2 };

void divergence_free(struct divergence *divergence)
{
    for (int i = 0; divergence && i <= LOOK_AHEAD; i++)
        slot_clear(&divergence->slot[i]);
    free(divergence);
}

/* Takes over the window's slot of the number. */
static int divergence_take(struct comm *comm, uint64_t number)
{
    struct slot *slot = window_slot(comm, number);
    invariant(number - comm->slot.divergence->number <= LOOK_AHEAD,
              "a divergence keeps the operations up to LOOK_AHEAD after it");
    return slot && slot->variants
               ? slot_copy(&comm->slot.divergence->slot[number - comm->slot.divergence->number],
                           slot)
               : 0;
}

int divergence_follow(struct comm *comm, uint64_t number, const struct member *member)
{
    struct divergence *divergence = comm->slot.divergence;
    if (!divergence || number < divergence->number || number > divergence->number + LOOK_AHEAD)
        return 0;
    struct slot *slot = window_slot(comm, number);
    struct slot *kept = &divergence->slot[number - divergence->number];
    /* The ranks are copied only where a variant is new: a copy for each rank would cost as much as
     * the square of their number. */
    if (!slot || slot->variants < 2 || slot->variants != kept->variants)
        return divergence_take(comm, number);
    int variant = slot_variant_of(slot, member->rank);
    kept->passed = slot->passed;
    return variant < 0 ? 0
                       : rankset_add(&slot_variant(kept, (uint32_t)variant)->ranks, member->rank);
}

int divergence_begin(struct comm *comm, uint64_t number)
{
    uint32_t finding = 0;
    if (comm->slot.divergence)
        finding = comm->slot.divergence->finding;
    divergence_free(comm->slot.divergence);
    comm->slot.divergence = calloc(1, sizeof *comm->slot.divergence);
    if (!comm->slot.divergence)
        return -1;
    comm->slot.divergence->number = number;
    comm->slot.divergence->finding = finding;
    comm_watch(comm);
    for (uint64_t i = 0; i <= LOOK_AHEAD; i++)
        if (divergence_take(comm, number + i))
            return -1;
    return 0;
}

bool divergence_is_due(const struct comm *comm, uint32_t reported)
{
    uint32_t passed = comm->slot.divergence->slot[0].passed;
    return passed >= comm->members || passed >= 2 * reported;
}

/* What the rank called `after` operations later; NULL if not known. */
static const struct signature *call_of(const struct comm *comm, int rank, int after)
{
    struct slot *slot = &comm->slot.divergence->slot[after];
    const struct member *member = comm_member(comm, rank);
    if (member && member->next <= comm->slot.divergence->number + (uint64_t)after)
        return NULL;
    if (slot->variants == 0)
        return NULL;
    int variant = slot->variants == 1 ? 0 : slot_variant_of(slot, rank);
    return variant < 0 ? NULL : &slot_variant(slot, (uint32_t)variant)->signature;
}

/* The calls of `early` from the divergence on are those of `late` from `shift` later on. */
static bool is_shifted(const struct comm *comm, int early, int late, int shift)
{
    int agreeing = 0;
    for (int i = 0; i + shift <= LOOK_AHEAD; i++) {
        const struct signature *a = call_of(comm, early, i), *b = call_of(comm, late, i + shift);
        if (!a || !b)
            break;
        if (signature_hash(a) != signature_hash(b))
            return false;
        agreeing++;
    }
    return agreeing >= SHIFT_PROOF;
}

/* One wrong call among equal ones looks like a shift from one side: a shift leaves more than one
 * pair unequal. */
static bool differ_once(const struct comm *comm, int rank, int other)
{
    int differing = 0;
    for (int i = 0; i <= LOOK_AHEAD; i++) {
        const struct signature *a = call_of(comm, rank, i), *b = call_of(comm, other, i);
        if (!a || !b)
            break;
        differing += signature_hash(a) != signature_hash(b);
    }
    return differing <= 1;
}

int divergence_shift(const struct comm *comm, int odd_rank, int other_rank)
{
    if (differ_once(comm, odd_rank, other_rank))
        return 0;
    for (int shift = 1; shift <= SHIFT_MAX; shift++) {
        if (is_shifted(comm, odd_rank, other_rank, shift))
            return shift;
        if (is_shifted(comm, other_rank, odd_rank, shift))
            return -shift;
    }
    return 0;
}
