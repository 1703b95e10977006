/* communicators.c: records calls that create communicators, and their members. */
#include <stddef.h>
#include <string.h>

#include "interpose/calls/communicators.h"
#include "interpose/calls/process_groups.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/hash/hashing.h"
#include "interpose/process/monitor.h"
#include "interpose/process/settings.h"
#include "interpose/progress/progress.h"
#include "interpose/calls/recording.h"
#include "interpose/real/resolve.h"
#include "interpose/timing/timing.h"

/* In the ids of shrunk and of grown communicators, so that they differ from those of splits. */
#define SHRINK_MARK 0x6b6e69726873u /* "shrink" */
#define GROW_MARK   0x6e776f7267u   /* "grown" */

/* New ranks of a communicator that grows know nothing of the old one but the id of
 * ncclCommGetUniqueId; NCCL fills its end with zeros and reads none of them. The shim writes there
 * which communicator it is for, so that all its ranks identify it alike. */
struct id_mark {
    char word[8];
    uint64_t comm;
};
static const char id_mark_word[8] = "ddpcheck";
enum { ID_MARK_AT = NCCL_UNIQUE_ID_BYTES - sizeof(struct id_mark) };

uint64_t unique_id_hash(const ncclUniqueId *ids, int count)
{
    if (!ids || count < 1)
        return 0;
    return string_id(ids->internal, sizeof ids->internal);
}

/* An entry that lives until the call's end or, in a group, until the group's. NULL if there are too
 * many. */
static struct pending_init *begin_init(struct recorded_call *call, const ncclConfig_t *config)
{
    struct thread_caches *caches = call->thread->caches;
    monitor_start();
    settings_record(call->thread);
    if (caches->inits == GROUP_INITS)
        return NULL;
    struct pending_init *init = &caches->init[caches->inits++];
    int device = gpu_thread_device(call->thread);
    *init = (struct pending_init){.rank = RECORD_NO_RANK,
                                  .nranks = -1,
                                  .device = device,
                                  .gpu = gpu_identity(device),
                                  .flags = config && config->blocking == 0 ? RECORD_COMM_NONBLOCKING
                                                                           : 0};
    call->init = init;
    return init;
}

static void emit_init_enter(struct recorded_call *call, const struct pending_init *init,
                            const void *handle, int rank)
{
    struct record record = {.comm = {.comm = init->comm,
                                     .parent = init->parent,
                                     .handle = (uintptr_t)handle,
                                     .nranks = init->nranks,
                                     .rank = rank,
                                     .device = init->device,
                                     .color = init->color,
                                     .key = init->key,
                                     .ordinal = init->ordinal,
                                     .gpu = init->gpu,
                                     .flags = init->flags,
                                     .pointer = init->excluded,
                                     .bytes = init->excluded_count}};
    record.flags = init->parent_ended ? RECORD_FLAG_GONE : 0;
    call->comm = init->comm;
    emit_enter(call, &record, NULL);
}

/* ncclConfig_t.commName came with NCCL 2.27; `size` is that of the caller's nccl.h. The fields
 * before it have been the same since. */
#define CONFIG_MAGIC 0xcafebeefu
enum { CONFIG_NAME_OFFSET = 48, COMM_NAME_MAX = 128 };
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
_Static_assert(offsetof(ncclConfig_t, commName) == CONFIG_NAME_OFFSET, "nccl.h");
#endif

/* Id of the string that the program names the communicator by, 0 if it has no name. */
static uint64_t config_name(struct shim_thread *thread, const ncclConfig_t *config, uint64_t comm)
{
    char title[GROUP_TITLE_BYTES];
    const char *name;
    if (!config || config->magic != CONFIG_MAGIC || config->size < CONFIG_NAME_OFFSET + sizeof name)
        return 0;
    memcpy(&name, (const char *)config + CONFIG_NAME_OFFSET, sizeof name);
    if (!name || !*name)
        return 0;
    uint32_t bytes = (uint32_t)strnlen(name, COMM_NAME_MAX);
    if (comm && process_groups_created(comm, name, bytes, title))
        return emit_string(thread, title, strlen(title));
    return emit_string(thread, name, bytes);
}

static void emit_comm_name(struct shim_thread *thread, uint64_t comm, uint64_t name)
{
    struct record record = {.range = {.text = name, .id = comm}};
    if (comm && name)
        emit_notice(thread, &record, API_notice_comm_name);
}

static bool is_zeroed(const ncclUniqueId *id)
{
    static const ncclUniqueId zeros;
    return !memcmp(id, &zeros, sizeof zeros);
}

void comm_init_enter(struct recorded_call *call, int nranks, int rank, const ncclUniqueId *ids,
                     int count, const ncclConfig_t *config)
{
    struct pending_init *init = begin_init(call, config);
    if (!init)
        return;
    init->comm = unique_id_hash(ids, count);
    if (init->comm && is_zeroed(ids))
        init->flags |= RECORD_COMM_ZERO_ID;
    init->ordinal = (uint32_t)count;
    init->nranks = nranks;
    init->rank = rank;
    init->name = config_name(call->thread, config, init->comm);
    emit_init_enter(call, init, NULL, rank);
    emit_comm_name(call->thread, init->comm, init->name); /* now, too: it may never come to be */
}

/* Identifies a child among the children of its parent: all its ranks have the same id, and no other
 * child has it. The ranks that a shrink leaves out don't know of it, and may split the parent
 * later. */
static uint64_t child_id(const struct pending_init *init, uint64_t color, uint32_t shrinks_before)
{
    uint64_t split[3] = {init->parent, init->ordinal, color};
    uint64_t shrink[4] = {init->parent, shrinks_before, SHRINK_MARK, init->excluded};
    return color == SHRINK_MARK ? string_id((const char *)shrink, sizeof shrink)
                                : string_id((const char *)split, sizeof split);
}

/* What the new communicator has of the one that it is made of. Returns that one's member, as it was
 * if it has ended; NULL: not known. */
static const struct local_member *set_parent(struct pending_init *init, ncclComm_t handle,
                                             const ncclConfig_t *config)
{
    const struct local_member *live = comms_find(handle);
    const struct local_member *parent = live ? live : comms_find_ended(handle);
    if (!parent)
        return NULL;
    init->parent = parent->comm;
    init->parent_ended = !live;
    if (live) {
        init->device = live->device;
        init->gpu = live->gpu;
        init->flags |= config ? 0 : live->flags & RECORD_COMM_NONBLOCKING;
    }
    return parent;
}

/* Handle and rank of the ENTER record are the caller's in the parent. `mark`: the color of a split,
 * or SHRINK_MARK. */
static void child_enter(struct recorded_call *call, struct pending_init *init, ncclComm_t handle,
                        const ncclConfig_t *config, uint64_t mark, int color, int key)
{
    struct local_member *parent = comms_find(handle);
    const struct local_member *caller = set_parent(init, handle, config);
    bool is_shrink = mark == SHRINK_MARK;
    uint32_t shrinks_before = parent && is_shrink ? comms_count_shrink(parent, init->excluded) : 0;
    if (parent)
        init->ordinal = atomic_fetch_add(is_shrink ? &parent->shrinks : &parent->splits, 1);
    init->color = color;
    init->key = key;
    if (color != NCCL_SPLIT_NOCOLOR && !init->parent_ended)
        init->comm = child_id(init, mark, shrinks_before);
    init->name = config_name(call->thread, config, init->comm);
    emit_init_enter(call, init, handle, caller ? caller->rank : RECORD_NO_RANK);
}

void comm_split_enter(struct recorded_call *call, ncclComm_t parent, int color, int key,
                      const ncclConfig_t *config)
{
    struct pending_init *init = begin_init(call, config);
    if (init)
        child_enter(call, init, parent, config, (uint32_t)color, color, key);
}

void comm_shrink_enter(struct recorded_call *call, ncclComm_t parent, const int *excluded,
                       int count, const ncclConfig_t *config, int flags)
{
    struct pending_init *init = begin_init(call, config);
    if (!init)
        return;
    for (int i = 0; excluded && i < count;
         i++) /* a sum, so that the order of the list does not count */
        init->excluded += string_id((const char *)&excluded[i], sizeof excluded[i]);
    init->excluded_count = count > 0 ? (uint32_t)count : 0;
    init->flags |= flags & NCCL_SHRINK_ABORT ? RECORD_COMM_ABORTS : 0;
    child_enter(call, init, parent, config, SHRINK_MARK, 0, 0);
}

static uint64_t grown_comm_id(uint64_t parent, uint32_t grows)
{
    uint64_t words[3] = {parent, grows, GROW_MARK};
    return string_id((const char *)words, sizeof words);
}

void comm_unique_id_enter(struct recorded_call *call, ncclComm_t comm)
{
    struct local_member *parent = comms_find(comm);
    comm_enter(call, comm, NULL, parent ? atomic_load(&parent->grows) : 0);
}

void comm_unique_id_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t comm,
                          ncclUniqueId *id)
{
    struct local_member *parent = comms_find(comm);
    static const char unused[sizeof(struct id_mark)];
    if (parent && id && result == ncclSuccess &&
        !memcmp(id->internal + ID_MARK_AT, unused, sizeof unused)) {
        struct id_mark mark = {.comm = grown_comm_id(parent->comm, atomic_load(&parent->grows))};
        memcpy(mark.word, id_mark_word, sizeof mark.word);
        memcpy(id->internal + ID_MARK_AT, &mark, sizeof mark);
    }
    emit_leave(call, result, 0);
}

static uint64_t marked_comm(const ncclUniqueId *id)
{
    struct id_mark mark;
    memcpy(&mark, id->internal + ID_MARK_AT, sizeof mark);
    return memcmp(mark.word, id_mark_word, sizeof mark.word) ? unique_id_hash(id, 1) : mark.comm;
}

void comm_grow_enter(struct recorded_call *call, ncclComm_t handle, int nranks,
                     const ncclUniqueId *id, int rank, const ncclConfig_t *config)
{
    struct pending_init *init = begin_init(call, config);
    if (!init)
        return;
    struct local_member *parent = comms_find(handle);
    const struct local_member *caller = set_parent(init, handle, config);
    init->nranks = nranks;
    init->rank = caller ? caller->rank : rank;
    if (parent) {
        init->ordinal = atomic_fetch_add(&parent->grows, 1);
        init->comm = grown_comm_id(parent->comm, init->ordinal);
    } else if (!handle && id) {
        init->comm = marked_comm(id);
    }
    init->name = config_name(call->thread, config, init->comm);
    emit_init_enter(call, init, handle, init->rank);
    emit_comm_name(call->thread, init->comm, init->name);
}

void comm_grow_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t *grown)
{
    const struct pending_init *init = call->init;
    bool is_known = init && init->comm;
    comm_init_leave(call, result, grown);
    if (!is_known)
        notice_grown(call->thread, result, grown);
}

/* Queries NCCL for what the call does not show. A communicator that is not ready yet is not
 * queried. */
static void query_member(struct local_member *member, ncclComm_t handle)
{
    __typeof__(&ncclCommUserRank) user_rank = REAL_HELPER(ncclCommUserRank);
    __typeof__(&ncclCommCount) count = REAL_HELPER(ncclCommCount);
    __typeof__(&ncclCommCuDevice) cu_device = REAL_HELPER(ncclCommCuDevice);
    int value;
    if (user_rank && user_rank(handle, &value) == ncclSuccess)
        member->rank = value;
    if (count && count(handle, &value) == ncclSuccess)
        member->nranks = value;
    if (cu_device && cu_device(handle, &value) == ncclSuccess && value != member->device) {
        member->device = value;
        member->gpu = gpu_identity(value);
    }
}

void communicators_announce(struct shim_thread *thread, struct local_member *member)
{
    if (atomic_exchange(&member->announced, 1))
        return;
    void *handle = atomic_load(&member->handle);
    query_member(member, handle);
    progress_prepare(member->device, thread);
    timing_prepare();
    hashing_prepare(thread, member->device);
    struct record record = {.comm = {.comm = member->comm,
                                     .parent = member->parent,
                                     .handle = (uintptr_t)handle,
                                     .nranks = member->nranks,
                                     .rank = member->rank,
                                     .device = member->device,
                                     .color = member->color,
                                     .key = member->key,
                                     .ordinal = member->ordinal,
                                     .gpu = member->gpu,
                                     .flags = member->flags}};
    if (!emit_notice(thread, &record, API_notice_member))
        atomic_store(&member->announced, 0);
    emit_comm_name(thread, member->comm, member->name);
}

/* The member of a creating call that succeeded so far. */
static void finish_init(struct shim_thread *thread, const struct pending_init *init,
                        ncclResult_t result)
{
    void *handle = init->handle ? *init->handle : NULL;
    if (!handle || !init->comm || (result != ncclSuccess && result != ncclInProgress))
        return;
    struct local_member *member = comms_find(handle);
    if (member && member->comm != init->comm)
        progress_release(member);
    if (!member || member->comm != init->comm)
        member = comms_add(handle, init);
    if (!member)
        return;
    if (result == ncclSuccess && !(init->flags & RECORD_COMM_NONBLOCKING))
        communicators_announce(thread, member);
    else
        atomic_store(&member->async, ncclInProgress);
}

void communicators_group_ended(struct shim_thread *thread, ncclResult_t result)
{
    struct thread_caches *caches = thread->caches;
    for (uint32_t i = 0; i < caches->inits; i++)
        finish_init(thread, &caches->init[i], result);
    caches->inits = 0;
}

void comm_init_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t *comm)
{
    struct pending_init *init = call->init;
    if (!init)
        return;
    bool created = (result == ncclSuccess || result == ncclInProgress) && comm && init->comm;
    if (created)
        init->handle = (void *const *)comm;
    emit_leave(call, result, created ? (uintptr_t)*comm : 0);
    if (call->thread->group_depth && created)
        return; /* the group's end creates it */
    finish_init(call->thread, init, result);
    call->thread->caches->inits--;
}

/* The first device that a list names again, -1 if there is none. */
static int listed_twice(const int *devices, int count)
{
    for (int i = 0; devices && i < count; i++)
        for (int k = 0; k < i; k++)
            if (devices[k] == devices[i])
                return devices[i];
    return RECORD_NO_DEVICE;
}

void comm_init_all_enter(struct recorded_call *call, int count, const int *devices)
{
    const struct process_info *process = &shim.process;
    monitor_start();
    struct pending_init init = {.rank = RECORD_NO_RANK,
                                .nranks = count,
                                .device = RECORD_NO_DEVICE,
                                .ordinal = comms_count_init_all()};
    uint64_t words[4] = {string_id(process->boot_id, strlen(process->boot_id)),
                         (uint64_t)process->pid, process->start_ticks, init.ordinal};
    init.comm = string_id((const char *)words, sizeof words);
    init.device = listed_twice(devices, count);
    if (init.device >= 0)
        init.flags = RECORD_COMM_DUPLICATE;
    emit_init_enter(call, &init, NULL, RECORD_NO_RANK);
    call->scalar = init.ordinal;
}

void comm_init_all_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t *comms,
                         int count, const int *devices)
{
    emit_leave(call, result, result == ncclSuccess && comms && count > 0 ? (uintptr_t)comms[0] : 0);
    if (result != ncclSuccess || !comms)
        return;
    for (int i = 0; i < count; i++) {
        int device = devices ? devices[i] : i;
        struct pending_init init = {.handle = (void *const *)&comms[i],
                                    .comm = call->comm,
                                    .rank = i,
                                    .nranks = count,
                                    .device = device,
                                    .gpu = gpu_identity(device),
                                    .ordinal = (uint32_t)call->scalar};
        finish_init(call->thread, &init, result);
    }
}
