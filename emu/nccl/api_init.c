/* api_init.c: communicators from a unique id, also those that grow by it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nccl_later.h"
#include "emu/core.h"
#include "emu/nccl/bootstrap.h"
#include "emu/nccl/config.h"
#include "emu/nccl/group.h"
#include "emu/nccl/errors.h"

/* What a ncclUniqueId holds. */
struct unique {
    char magic[8];
    struct segment_id id;
};

static const char unique_magic[8] = "DDPNCCL";

_Static_assert(sizeof(struct unique) <= NCCL_UNIQUE_ID_BYTES, "the id must fit");

static void write_id(ncclUniqueId *id, struct segment_id segment)
{
    struct unique unique = {.id = segment};

    memcpy(unique.magic, unique_magic, sizeof(unique.magic));
    memset(id, 0, sizeof(*id));
    memcpy(id, &unique, sizeof(unique));
}

PUBLIC(ncclGetUniqueId);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct segment_id segment;

    if (!id)
        return fail(ncclInvalidArgument, "GetUniqueId : UniqueId argument is NULL");
    segment_clean();
    if (segment_id_make(&segment))
        return fail(ncclSystemError, "GetUniqueId : no random numbers: %s", strerror(errno));
    write_id(id, segment);
    return ncclSuccess;
}

/* Ids whose communicator this process saw complete. NCCL's bootstrap answers the ranks of an id
 * once and then closes: a rank that comes again is refused the connection. */
enum { USED_IDS = 1024 };

static struct {
    pthread_mutex_t lock;
    struct segment_id id[USED_IDS];
    size_t count;
} used = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void id_used(const struct segment_id *id)
{
    pthread_mutex_lock(&used.lock);
    used.id[used.count++ % USED_IDS] = *id;
    pthread_mutex_unlock(&used.lock);
}

static bool id_was_used(const struct segment_id *id)
{
    bool found = false;

    pthread_mutex_lock(&used.lock);
    for (size_t i = 0; i < used.count && i < USED_IDS && !found; i++)
        found = !memcmp(&used.id[i], id, sizeof(*id));
    pthread_mutex_unlock(&used.lock);
    return found;
}

static ncclResult_t init_run(struct group_job *job)
{
    struct creation *creation = (struct creation *)job;
    ncclResult_t result = bootstrap_join(creation->comm);

    if (!result)
        id_used(&creation->comm->id);
    return creation_end(creation, result);
}

static void init_free(struct group_job *job)
{
    creation_release((struct creation *)job);
    free(job);
}

static ncclResult_t read_id(const ncclUniqueId *id, struct segment_id *segment)
{
    struct unique unique;

    memcpy(&unique, id, sizeof(unique));
    if (memcmp(unique.magic, unique_magic, sizeof(unique_magic)))
        return fail(ncclInvalidArgument,
                    "CommInitRank : commId was not made by ncclGetUniqueId of this library "
                    "(was it sent to all ranks, all %d bytes?)",
                    NCCL_UNIQUE_ID_BYTES);
    if (id_was_used(&unique.id))
        return fail(
            ncclRemoteError,
            "CommInitRank : connection to the bootstrap root refused: a communicator was made "
            "from this commId before");
    *segment = unique.id;
    return ncclSuccess;
}

static ncclResult_t join_by_id(ncclComm_t *slot, int ranks, struct segment_id id, int rank,
                               int device, const ncclConfig_t *config)
{
    struct ncclComm *comm = communicator_new(rank, ranks, device, config);
    struct creation *creation = calloc(1, sizeof(*creation));

    if (!comm || !creation) {
        if (comm)
            communicator_retire(comm);
        free(creation);
        return fail(ncclSystemError, "CommInitRank : out of memory");
    }
    comm->id = id;
    creation->job.run = init_run;
    creation->job.free = init_free;
    creation_begin(creation, comm, slot, config->blocking);
    group_add_job(&creation->job);
    return ncclSuccess;
}

static ncclResult_t begin_creation(ncclComm_t *slot, int ranks, const ncclUniqueId *id, int rank,
                                   int device, const ncclConfig_t *given)
{
    struct segment_id segment;
    ncclConfig_t config;
    ncclResult_t result;

    if (!slot)
        return fail(ncclInvalidArgument, "CommInitRank : newcomm argument is NULL");
    *slot = NULL;
    if (ranks < 1 || rank < 0 || rank >= ranks)
        return fail(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, ranks);
    if (device < 0 || device >= emu_device_count())
        return fail(ncclUnhandledCudaError, "CommInitRank : no device %d (there are %d)", device,
                    emu_device_count());
    result = read_id(id, &segment);
    if (!result)
        result = config_resolve(given, NULL, &config);
    return result ? result : join_by_id(slot, ranks, segment, rank, device, &config);
}

static ncclResult_t init(ncclComm_t *slot, int ranks, const ncclUniqueId *id, int rank,
                         const ncclConfig_t *config)
{
    group_enter();
    return group_leave(begin_creation(slot, ranks, id, rank, emu_device_current(), config));
}

PUBLIC(ncclCommInitRank);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    return init(comm, ranks, &id, rank, NULL);
}

PUBLIC(ncclCommInitRankConfig);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    return init(comm, ranks, &id, rank, config);
}

/* More ids only spread the load of a bootstrap over sockets; here the first one serves all. */
PUBLIC(ncclCommInitRankScalable);
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int ids,
                                      ncclUniqueId *id, ncclConfig_t *config)
{
    if (!id || ids < 1 || ids > ranks) {
        group_enter();
        return group_leave(fail(ncclInvalidArgument,
                                "CommInitRankScalable : %d commIds for %d ranks", ids, ranks));
    }
    return init(comm, ranks, id, rank, config);
}

static ncclResult_t check_all(const ncclComm_t *comms, int count, const int *devices)
{
    int have = emu_device_count();

    if (!comms || count < 1 || (!devices && count > have))
        return fail(ncclInvalidArgument,
                    "CommInitAll : invalid device count requested : %d (there are %d)", count,
                    have);
    for (int i = 0; devices && i < count; i++) {
        if (devices[i] < 0 || devices[i] >= have)
            return fail(ncclInvalidArgument, "CommInitAll : invalid device %d (there are %d)",
                        devices[i], have);
        for (int k = 0; k < i; k++)
            if (devices[k] == devices[i])
                return fail(ncclInvalidUsage, "CommInitAll : device %d is listed twice",
                            devices[i]);
    }
    return ncclSuccess;
}

PUBLIC(ncclCommInitAll);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    ncclResult_t result = check_all(comms, count, devices);
    ncclUniqueId id;

    if (!result)
        result = ncclGetUniqueId(&id);
    group_enter();
    for (int i = 0; i < count && !result; i++)
        result = begin_creation(&comms[i], count, &id, i, devices ? devices[i] : i, NULL);
    return group_leave(result);
}

/* --- growing --- */

/* All old ranks know it, as they grow together; the new ones have it from the unique id. The high
 * bits keep it apart from splits and shrinks. */
static struct segment_id growth_segment(const struct ncclComm *old)
{
    return segment_id_derive(old->id, UINT64_C(3) << 62 | (uint64_t)old->grows, 0);
}

PUBLIC(ncclCommGetUniqueId);
ncclResult_t ncclCommGetUniqueId(ncclComm_t handle, ncclUniqueId *id)
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t result;

    if (!comm)
        return fail(ncclInvalidArgument,
                    "ncclCommGetUniqueId : comm argument is NULL or not a communicator");
    result = communicator_ready(comm);
    if (!result && !id)
        result = fail(ncclInvalidArgument, "ncclCommGetUniqueId : uniqueId argument is NULL");
    if (!result && comm->grow_ids > comm->grows)
        result = fail(ncclInvalidUsage, "ncclCommGetUniqueId : the last id is not used yet");
    if (!result) {
        comm->grow_ids = comm->grows + 1;
        write_id(id, growth_segment(comm));
    }
    communicator_put(comm);
    return result;
}

static ncclResult_t check_grow(const struct ncclComm *old, int ranks, const ncclUniqueId *id,
                               int rank)
{
    if (ranks <= (old ? old->ranks : 0))
        return fail(ncclInvalidArgument, "ncclCommGrow : %d ranks are not more than before", ranks);
    if (old ? rank != -1 : rank < 0 || rank >= ranks)
        return fail(ncclInvalidArgument,
                    "ncclCommGrow : rank %d (old ranks give -1, new ones one below %d)", rank,
                    ranks);
    if (!old && !id)
        return fail(ncclInvalidArgument, "ncclCommGrow : a new rank gives no uniqueId");
    return ncclSuccess;
}

static ncclResult_t grow_old(struct ncclComm *old, int ranks, ncclComm_t *slot,
                             const ncclConfig_t *given)
{
    ncclConfig_t config;
    ncclResult_t result = communicator_ready(old);

    if (!result)
        result = config_resolve(given, &old->config, &config);
    if (!result)
        result = join_by_id(slot, ranks, growth_segment(old), old->rank, old->device, &config);
    old->grows += !result;
    return result;
}

PUBLIC(ncclCommGrow);
ncclResult_t ncclCommGrow(ncclComm_t handle, int ranks, const ncclUniqueId *id, int rank,
                          ncclComm_t *grown, ncclConfig_t *config)
{
    struct ncclComm *old = communicator_get(handle);
    ncclResult_t result;

    group_enter();
    if (!grown)
        result = fail(ncclInvalidArgument, "ncclCommGrow : newcomm argument is NULL");
    else if (handle && !old)
        result = fail(ncclInvalidArgument, "ncclCommGrow : comm argument is not a communicator");
    else
        result = check_grow(old, ranks, id, rank);
    if (grown)
        *grown = NULL;
    if (!result)
        result = old ? grow_old(old, ranks, grown, config)
                     : begin_creation(grown, ranks, id, rank, emu_device_current(), config);
    if (old)
        communicator_put(old);
    return group_leave(result);
}
