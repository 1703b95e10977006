/* cycle_culprit.c: what a cycle of waits is reported as: itself, or the ranks that went astray. */
#include "analyzer/checks/hang/hang.h"

#include "analyzer/model/comm.h"

/* More ranks wait than are missing: then those are reported, who did not do what the others did. */
static bool few_are_missing(const struct wait_node *wait)
{
    return wait->missing_count && wait->kind == WAIT_COLLECTIVE &&
           2 * wait->missing_count < wait->comm->members;
}

/* A flag or a barrier, as PyTorch's: an AllReduce of one element. */
static bool is_barrier(const struct wait_node *wait)
{
    return wait->kind == WAIT_COLLECTIVE && wait->signature.api == API_ncclAllReduce &&
           wait->signature.count == 1;
}

/* Two operations, each with as many ranks in it as are missing, so that no majority says which
 * ranks went astray: if exactly one of the two is a barrier, some ranks skipped it. Else NULL. */
static const struct wait_node *skipped_barrier(const struct cycle *cycle)
{
    const struct wait_node *barrier = NULL;
    if (cycle->steps != 2)
        return NULL;
    for (int i = 0; i < cycle->steps; i++) {
        const struct wait_node *wait = cycle->step[i].wait;
        if (!cycle->step[i].missing || wait->kind != WAIT_COLLECTIVE ||
            2 * wait->missing_count != wait->comm->members)
            return NULL;
        if (is_barrier(wait) && barrier)
            return NULL;
        if (is_barrier(wait))
            barrier = wait;
    }
    return barrier;
}

/* All of the part's ranks are among the whole's, and not all of the whole's among the part's. */
static bool is_part_of(const struct comm *part, const struct comm *whole)
{
    for (uint32_t i = 0; i < part->members; i++) {
        bool found = false;
        for (uint32_t k = 0; k < whole->members && !found; k++)
            found = whole->member[k]->process == part->member[i]->process;
        if (!found)
            return false;
    }
    return part->members < whole->members;
}

/* The missing rank, which is in an operation of the whole, made its last call on the part before
 * its last but one on the whole: it left one out since, if calls on both take turns. */
static bool part_is_due(const struct missing *missing, const struct comm *whole)
{
    for (uint32_t i = 0; i < whole->members; i++) {
        const struct member *member = whole->member[i];
        if (missing->member && member->process == missing->process)
            return missing->member->launches.last.position &&
                   missing->member->launches.last.position < member->launches.previous.position;
    }
    return false;
}

/* An operation of a part of the ranks, as a subgroup's, whose missing ranks are in one of all ranks
 * meanwhile. They skipped it if those who wait in it have called the other one as well, or if it
 * was always called before the other one. NULL: none, or not known. */
static const struct wait_node *skipped_in_part(const struct cycle *cycle)
{
    if (cycle->steps != 2)
        return NULL;
    for (int i = 0; i < cycle->steps; i++) {
        const struct cycle_step *step = &cycle->step[i], *next = &cycle->step[!i];
        if (!step->missing || step->wait->kind != WAIT_COLLECTIVE ||
            next->wait->kind != WAIT_COLLECTIVE || !is_part_of(step->wait->comm, next->wait->comm))
            continue;
        return next->behind || part_is_due(step->missing, next->wait->comm) ? step->wait : NULL;
    }
    return NULL;
}

/* A message whose other end went on to a collective that waits for the one who waits for the
 * message. There were such messages before, so it was skipped, rather than waited for once too
 * often. NULL: none, or several; or the two have communicators of their own, which one of the ranks
 * may as well use in another order. */
static const struct wait_node *skipped_message(const struct cycle *cycle)
{
    const struct wait_node *skipped = NULL;
    for (int i = 0; i < cycle->steps; i++) {
        const struct cycle_step *step = &cycle->step[i];
        const struct wait_node *next = cycle->step[(i + 1) % cycle->steps].wait;
        if (step->wait->kind != WAIT_PEER || !step->missing || next->kind != WAIT_COLLECTIVE)
            continue;
        if (skipped || !step->wait->number || step->wait->comm != next->comm)
            return NULL;
        skipped = step->wait;
    }
    return skipped;
}

/* Two groups crossed: the missing rank makes a call on the other one that all make, but from
 * elsewhere in the program than ever before. One that left a call out goes its usual way. */
static bool is_crossed(const struct cycle *cycle)
{
    for (int i = 0; cycle->steps == 2 && i < cycle->steps; i++) {
        const struct missing *missing = cycle->step[i].missing;
        const struct wait_node *wait = cycle->step[i].wait, *other = cycle->step[!i].wait;
        bool is_usual = missing && wait->number && wait->kind == WAIT_COLLECTIVE;
        for (uint32_t k = 0; is_usual && k < other->comm->members; k++)
            if (other->comm->member[k]->process == missing->process &&
                other->kind == WAIT_COLLECTIVE && other->comm != wait->comm &&
                other->comm->member[k]->launches.is_moved)
                return true;
    }
    return false;
}

/* The first message to a rank that receives its first one from another rank instead: one of the two
 * names the wrong rank. NULL: there is none. */
static const struct wait_node *misnamed_message(struct analyzer *analyzer,
                                                const struct cycle *cycle)
{
    for (int i = 0; i < cycle->steps; i++) {
        const struct wait_node *wait = cycle->step[i].wait;
        if (!wait->receives && cycle->step[i].missing && hang_message_beside(analyzer, wait) >= 0)
            return wait;
    }
    return NULL;
}

const struct check *cycle_check(struct analyzer *analyzer, const struct cycle *cycle,
                                const struct wait_node **culprit)
{
    bool all_peers = true, any_peer = false, all_issued = true, one_comm = true, setup = false;
    *culprit = NULL;
    for (int i = 0; i < cycle->steps; i++) {
        const struct cycle_step *step = &cycle->step[i];
        any_peer |= step->wait->kind == WAIT_PEER;
        all_peers &= step->wait->kind == WAIT_PEER;
        setup |= !kind_is_operation(step->wait->kind);
        all_issued &= step->behind != NULL;
        one_comm &= step->wait->comm == cycle->step[0].wait->comm;
        if (step->missing && few_are_missing(step->wait) &&
            (!*culprit || step->wait->missing_count < (*culprit)->missing_count))
            *culprit = step->wait;
    }
    if (!cycle->steps || setup)
        return NULL;
    const struct wait_node *misnamed = misnamed_message(analyzer, cycle);
    if (misnamed) {
        *culprit = misnamed;
        return NULL;
    }
    if (all_peers || (all_issued && one_comm && any_peer))
        return &check_message_cycle;
    if (all_issued || is_crossed(cycle))
        return &check_wait_cycle;
    if (skipped_message(cycle))
        *culprit = skipped_message(cycle);
    if (skipped_in_part(cycle))
        *culprit = skipped_in_part(cycle);
    if (!*culprit && !one_comm)
        *culprit = skipped_barrier(cycle);
    return *culprit || one_comm ? NULL : &check_wait_cycle;
}
