/* api_query.c: queries of a communicator. */
#include "emu/nccl/communicator.h"
#include "emu/nccl/errors.h"

enum property { RANKS, RANK, DEVICE };

static int property_of(const struct ncclComm *comm, enum property property)
{
    switch (property) {
    case RANKS:
        return comm->ranks;
    case RANK:
        return comm->rank;
    default:
        return comm->device;
    }
}

static ncclResult_t query_property(const char *call, ncclComm_t handle, enum property property,
                                   int *value)
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t state;

    if (!comm)
        return fail(ncclInvalidArgument, "%s : comm argument is NULL or not a communicator", call);
    state = (ncclResult_t)atomic_load(&comm->state);
    if (!value)
        state = fail(ncclInvalidArgument, "%s : the argument for the result is NULL", call);
    else if (state == ncclInProgress)
        state = fail(ncclInvalidArgument,
                     "%s : the previous operation on the communicator is still in progress", call);
    else if (!state)
        *value = property_of(comm, property);
    communicator_put(comm);
    return state;
}

PUBLIC(ncclCommCount);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    return query_property("CommCount", comm, RANKS, count);
}

PUBLIC(ncclCommUserRank);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return query_property("CommUserRank", comm, RANK, rank);
}

PUBLIC(ncclCommCuDevice);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return query_property("CommCuDevice", comm, DEVICE, device);
}

PUBLIC(ncclCommGetAsyncError);
ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error)
{
    struct ncclComm *comm = communicator_get(handle);

    if (!comm)
        return fail(ncclInvalidArgument,
                    "ncclGetAsyncError : comm argument is NULL or not a communicator");
    if (error)
        *error = (ncclResult_t)atomic_load(&comm->state);
    communicator_put(comm);
    return error ? ncclSuccess
                 : fail(ncclInvalidArgument, "ncclGetAsyncError : asyncError argument is NULL");
}
