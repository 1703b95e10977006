/* api_split.c: communicators from others. */
#include <stdlib.h>

#include "emu/nccl/bootstrap.h"
#include "emu/nccl/config.h"
#include "emu/nccl/group.h"
#include "emu/nccl/errors.h"

struct split {
    struct creation creation;
    struct ncclComm *parent; /* a reference */
    struct split_vote vote;
    uint64_t number; /* of the parent's host calls */
    bool ran;
};

/* Unlike operations, these are allowed on a communicator that was revoked. */
static ncclResult_t check_parent(const struct ncclComm *parent, const char *call)
{
    ncclResult_t state = (ncclResult_t)atomic_load(&parent->state);

    if (state == ncclInProgress)
        return fail(ncclInvalidArgument,
                    "%s : the previous operation on the communicator is still in progress", call);
    return state;
}

/* Who is in the child and in which order: by key, then by rank in the parent. */
static void find_split_rank(const struct split *split, int *rank, int *ranks)
{
    const struct ncclComm *parent = split->parent;

    *rank = *ranks = 0;
    for (int i = 0; i < parent->ranks; i++) {
        struct split_vote other = parent->segment.members[i].votes[split->number % 2];

        if (other.color != split->vote.color)
            continue;
        ++*ranks;
        *rank += other.key < split->vote.key || (other.key == split->vote.key && i < parent->rank);
    }
}

/* All members of the parent publish their colors and keys. */
static ncclResult_t vote(struct split *split, int *rank, int *ranks)
{
    struct ncclComm *parent = split->parent;
    bool met = communicator_host_enter(parent, split->number);

    if (met) {
        parent->segment.members[parent->rank].votes[split->number % 2] = split->vote;
        met = bootstrap_meet(parent);
    }
    if (!met)
        return fail(ncclInternalError, "ncclCommSplit : the parent was aborted");
    find_split_rank(split, rank, ranks);
    communicator_host_leave(parent);
    return ncclSuccess;
}

static ncclResult_t split_run(struct group_job *job)
{
    struct split *split = (struct split *)job;
    struct ncclComm *child = split->creation.comm;
    int rank = 0, ranks = 0;
    ncclResult_t result;

    split->ran = true;
    result = vote(split, &rank, &ranks);
    if (!result && child) {
        child->id =
            segment_id_derive(split->parent->id, split->number, (uint64_t)split->vote.color);
        result = communicator_resize(child, rank, ranks)
                     ? bootstrap_join(child)
                     : fail(ncclSystemError, "ncclCommSplit : out of memory");
    }
    if (!job->blocking)
        atomic_store(&split->parent->state, ncclSuccess);
    return creation_end(&split->creation, result);
}

static void split_free(struct group_job *job)
{
    struct split *split = (struct split *)job;

    creation_release(&split->creation);
    if (!split->ran) {
        communicator_host_return(split->parent, split->number);
        if (!job->blocking)
            atomic_store(&split->parent->state, ncclSuccess);
    }
    communicator_put(split->parent);
    free(split);
}

static ncclResult_t split_begin(struct ncclComm *parent, struct split_vote vote, ncclComm_t *slot,
                                const ncclConfig_t *given)
{
    struct split *split;
    struct ncclComm *child = NULL;
    ncclConfig_t config;
    ncclResult_t result = check_parent(parent, "ncclCommSplit");

    if (!result)
        result = config_resolve(given, &parent->config, &config);
    if (result)
        return result;
    if (vote.color < 0 && vote.color != NCCL_SPLIT_NOCOLOR)
        return fail(ncclInvalidArgument,
                    "ncclCommSplit : invalid color %d (not negative, or NCCL_SPLIT_NOCOLOR)",
                    vote.color);
    split = calloc(1, sizeof(*split));
    if (split && vote.color != NCCL_SPLIT_NOCOLOR)
        child = communicator_new(0, 0, parent->device, &config);
    if (!split || (!child && vote.color != NCCL_SPLIT_NOCOLOR)) {
        free(split);
        return fail(ncclSystemError, "ncclCommSplit : out of memory");
    }
    split->creation.job = (struct group_job){
        .run = split_run, .free = split_free, .blocking = parent->config.blocking};
    if (child)
        creation_begin(&split->creation, child, slot, parent->config.blocking);
    communicator_hold(parent);
    split->parent = parent;
    split->vote = vote;
    split->number = communicator_host_number(parent);
    if (!parent->config.blocking)
        atomic_store(&parent->state, ncclInProgress);
    group_add_job(&split->creation.job);
    return ncclSuccess;
}

PUBLIC(ncclCommSplit);
ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t *child,
                           ncclConfig_t *config)
{
    struct ncclComm *parent = communicator_get(handle);
    ncclResult_t result;

    group_enter();
    if (!parent) {
        result = fail(ncclInvalidArgument,
                      "ncclCommSplit : comm argument is NULL or not a communicator");
    } else if (!child) {
        result = fail(ncclInvalidArgument, "ncclCommSplit : newcomm argument is NULL");
    } else {
        *child = NULL;
        result = split_begin(parent, (struct split_vote){color, key}, child, config);
    }
    if (parent)
        communicator_put(parent);
    return group_leave(result);
}

/* Only the ranks that stay meet; the parent may be broken. */
static ncclResult_t shrink_run(struct group_job *job)
{
    struct creation *creation = (struct creation *)job;

    return creation_end(creation, bootstrap_join(creation->comm));
}

static void shrink_free(struct group_job *job)
{
    creation_release((struct creation *)job);
    free(job);
}

/* Which ranks stay. Sets `what` to a number that identifies those left out, whatever their order.
 */
static ncclResult_t exclude(const struct ncclComm *parent, const int *list, int count, int *rank,
                            int *ranks, uint64_t *what)
{
    bool *out = calloc((size_t)parent->ranks, sizeof(*out));
    ncclResult_t result = ncclSuccess;

    if (!out)
        return fail(ncclSystemError, "ncclCommShrink : out of memory");
    for (int i = 0; i < count && !result; i++) {
        if (list[i] < 0 || list[i] >= parent->ranks || out[list[i]])
            result = fail(ncclInvalidArgument,
                          "ncclCommShrink : excluded rank %d is out of range or listed twice",
                          list[i]);
        else if (list[i] == parent->rank)
            result = fail(ncclInvalidArgument,
                          "ncclCommShrink : called by rank %d, which is to be excluded", list[i]);
        else
            out[list[i]] = true;
    }
    for (int i = 0; i < parent->ranks && !result; i++) {
        *what = *what * UINT64_C(0x100000001b3) + (uint64_t)out[i] + 1;
        *ranks += !out[i];
        *rank += !out[i] && i < parent->rank;
    }
    free(out);
    return result;
}

static ncclResult_t shrink_begin(struct ncclComm *parent, const int *list, int count,
                                 ncclComm_t *slot, const ncclConfig_t *given, int flags)
{
    struct creation *creation;
    struct ncclComm *child;
    ncclConfig_t config;
    int rank = 0, ranks = 0;
    uint64_t what = 0;
    ncclResult_t result = check_parent(parent, "ncclCommShrink");

    if (!result)
        result = config_resolve(given, &parent->config, &config);
    if (!result)
        result = exclude(parent, list, count, &rank, &ranks, &what);
    if (result)
        return result;
    if (flags & NCCL_SHRINK_ABORT)
        communicator_stop(parent, STOP_REVOKED);
    child = communicator_new(rank, ranks, parent->device, &config);
    creation = calloc(1, sizeof(*creation));
    if (!child || !creation) {
        if (child)
            communicator_retire(child);
        free(creation);
        return fail(ncclSystemError, "ncclCommShrink : out of memory");
    }
    /* The high bits keep shrinks and splits apart. */
    child->id =
        segment_id_derive(parent->id, UINT64_C(1) << 63 | (uint64_t)parent->shrinks++, what);
    creation->job.run = shrink_run;
    creation->job.free = shrink_free;
    creation_begin(creation, child, slot, parent->config.blocking);
    group_add_job(&creation->job);
    return ncclSuccess;
}

PUBLIC(ncclCommShrink);
ncclResult_t ncclCommShrink(ncclComm_t handle, int *list, int count, ncclComm_t *child,
                            ncclConfig_t *config, int flags)
{
    struct ncclComm *parent = communicator_get(handle);
    ncclResult_t result;

    group_enter();
    if (!parent) {
        result = fail(ncclInvalidArgument,
                      "ncclCommShrink : comm argument is NULL or not a communicator");
    } else if (!child || !list || count < 1 || count >= parent->ranks ||
               flags & ~NCCL_SHRINK_ABORT) {
        result = fail(
            ncclInvalidArgument,
            "ncclCommShrink : newcomm or the list is NULL, or count %d or flags %d are invalid",
            count, flags);
    } else {
        *child = NULL;
        result = shrink_begin(parent, list, count, child, config, flags);
    }
    if (parent)
        communicator_put(parent);
    return group_leave(result);
}
