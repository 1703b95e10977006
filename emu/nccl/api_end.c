/* api_end.c: how communicators end: in order (finalize, destroy) or by force (abort, revoke). */
#include <stdlib.h>

#include "emu/nccl/errors.h"
#include "emu/nccl/group.h"

struct comm_ending {
    struct group_job job;
    struct ncclComm *comm; /* a reference */
};

static void ending_free(struct group_job *job)
{
    communicator_put(((struct comm_ending *)job)->comm);
    free(job);
}

static ncclResult_t finalize_run(struct group_job *job)
{
    struct ncclComm *comm = ((struct comm_ending *)job)->comm;

    communicator_drain(comm);
    atomic_store(&comm->state, ncclSuccess);
    return ncclSuccess;
}

static ncclResult_t destroy_run(struct group_job *job)
{
    struct ncclComm *comm = ((struct comm_ending *)job)->comm;

    communicator_drain(comm);
    communicator_retire(comm);
    return ncclSuccess;
}

static ncclResult_t add_ending(struct ncclComm *comm, ncclResult_t (*run)(struct group_job *job),
                               bool blocking)
{
    struct comm_ending *ending = calloc(1, sizeof(*ending));

    if (!ending)
        return fail(ncclSystemError, "Out of memory");
    communicator_hold(comm);
    ending->comm = comm;
    ending->job = (struct group_job){.run = run, .free = ending_free, .blocking = blocking};
    group_add_job(&ending->job);
    return ncclSuccess;
}

static ncclResult_t finalize_communicator(struct ncclComm *comm)
{
    ncclResult_t state = (ncclResult_t)atomic_load(&comm->state);

    if (state)
        return state == ncclInProgress
                   ? fail(ncclInvalidArgument, "ncclCommFinalize : the previous operation on the "
                                               "communicator is still in progress")
                   : state;
    if (atomic_load(&comm->stop))
        return fail(ncclInvalidUsage, "ncclCommFinalize : the communicator was revoked");
    if (atomic_exchange(&comm->finalized, true))
        return fail(ncclInvalidArgument,
                    "ncclCommFinalize : the communicator was finalized before");
    if (!communicator_blocking(comm))
        atomic_store(&comm->state, ncclInProgress);
    return add_ending(comm, finalize_run, communicator_blocking(comm));
}

static ncclResult_t destroy_communicator(struct ncclComm *comm)
{
    if (atomic_load(&comm->state) == ncclInProgress)
        return fail(
            ncclInvalidArgument,
            "ncclCommDestroy : the previous operation on the communicator is still in progress");
    return add_ending(comm, destroy_run, true);
}

static ncclResult_t abort_communicator(struct ncclComm *comm)
{
    communicator_stop(comm, STOP_ABORTED);
    communicator_retire(comm);
    return ncclSuccess;
}

/* NULL is allowed, as in NCCL. */
static ncclResult_t end_communicator(ncclComm_t handle, const char *call,
                                     ncclResult_t (*how)(struct ncclComm *comm))
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t result;

    if (!handle)
        return ncclSuccess;
    group_enter();
    if (comm) {
        result = how(comm);
        communicator_put(comm);
    } else {
        result = fail(ncclInvalidArgument,
                      "%s : comm argument is not a communicator (destroyed before?)", call);
    }
    return group_leave(result);
}

PUBLIC(ncclCommFinalize);
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return end_communicator(comm, "ncclCommFinalize", finalize_communicator);
}

PUBLIC(ncclCommDestroy);
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    return end_communicator(comm, "ncclCommDestroy", destroy_communicator);
}

/* At once, even inside a group: somebody is stuck. */
PUBLIC(ncclCommAbort);
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return end_communicator(comm, "ncclCommAbort", abort_communicator);
}

static ncclResult_t revoke_communicator(struct ncclComm *comm)
{
    ncclResult_t state = (ncclResult_t)atomic_load(&comm->state);

    if (state)
        return state == ncclInProgress
                   ? fail(ncclInvalidArgument, "ncclCommRevoke : the previous operation on the "
                                               "communicator is still in progress")
                   : state;
    communicator_stop(comm, STOP_REVOKED);
    /* Work at a rendezvous gives up now; what is queued behind other work finds out when it runs.
     */
    pthread_mutex_lock(&comm->lock);
    while (comm->running && atomic_load(&comm->stop) < STOP_ABORTED)
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
    return ncclSuccess;
}

PUBLIC(ncclCommRevoke);
ncclResult_t ncclCommRevoke(ncclComm_t handle, int flags)
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t result;

    if (!comm)
        return fail(ncclInvalidArgument,
                    "ncclCommRevoke : comm argument is NULL or not a communicator");
    result = flags == NCCL_REVOKE_DEFAULT
                 ? revoke_communicator(comm)
                 : fail(ncclInvalidArgument, "ncclCommRevoke : invalid flags %d", flags);
    communicator_put(comm);
    return result;
}
