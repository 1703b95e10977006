/* api_query.c: queries of a communicator. */
#include <string.h>

#include "abi/nccl_later.h"
#include "emu/core/device.h"
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

/* What the caller's release of NCCL knows of it: at least as much as that of 2.29.2. A device
 * communicator can be made; GIN and multimem are not there. */
static ncclResult_t fill_properties(const struct ncclComm *comm, struct nccl_comm_properties *props)
{
    const struct emu_device *device = emu_device_get(comm->device);
    size_t size = props->size < sizeof(*props) ? props->size : sizeof(*props);
    struct nccl_comm_properties filled = {.size = props->size,
                                          .magic = props->magic,
                                          .version = props->version,
                                          .rank = comm->rank,
                                          .nRanks = comm->ranks,
                                          .cudaDev = comm->device,
                                          .nvmlDev = device ? device->physical : comm->device,
                                          .deviceApiSupport = true,
                                          .nLsaTeams = 1,
                                          .hostRmaSupport = true,
                                          .commHash = comm->hash};
    const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    if (props->magic != config.magic || size < offsetof(struct nccl_comm_properties, nLsaTeams))
        return fail(ncclInvalidUsage, "ncclCommQueryProperties : props were not initialized via "
                                      "NCCL_COMM_PROPERTIES_INITIALIZER");
    memcpy(props, &filled, size);
    return ncclSuccess;
}

PUBLIC(ncclCommQueryProperties);
ncclResult_t ncclCommQueryProperties(ncclComm_t handle, struct ncclCommProperties *props)
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t result;

    if (!comm)
        return fail(ncclInvalidArgument,
                    "ncclCommQueryProperties : comm argument is NULL or not a communicator");
    result = communicator_ready(comm);
    if (!result && !props)
        result = fail(ncclInvalidArgument, "ncclCommQueryProperties : props argument is NULL");
    if (!result)
        result = fill_properties(comm, (struct nccl_comm_properties *)props);
    communicator_put(comm);
    return result;
}
