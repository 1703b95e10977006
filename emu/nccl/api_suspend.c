/* api_suspend.c: gives a communicator's memory back for a while (ncclCommSuspend), and says how
 * much it has. As in NCCL, all members meet in either call, at once even inside a group. */
#include "abi/nccl_later.h"
#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/stream.h"
#include "emu/nccl/bootstrap.h"
#include "emu/nccl/communicator.h"
#include "emu/nccl/errors.h"

/* All work of the device is done, and all members have come. */
static ncclResult_t meet_idle(struct ncclComm *comm, const char *call)
{
    uint64_t number = communicator_host_number(comm);
    int error = emu_stream_synchronize_device(emu_device_get(comm->device));

    if (!communicator_host_enter(comm, number) || !bootstrap_meet(comm))
        return fail(ncclInternalError, "%s : the communicator was aborted", call);
    communicator_host_leave(comm);
    return error ? fail(ncclUnhandledCudaError, "%s : Cuda failure %d", call, error) : ncclSuccess;
}

/* `suspends`: what it is to be after the call, and is not before. */
static ncclResult_t set_suspended(ncclComm_t handle, const char *call, bool suspends)
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t result;

    if (!comm)
        return fail(ncclInvalidArgument, "%s : comm argument is NULL or not a communicator", call);
    result = communicator_ready(comm);
    if (!result && atomic_load(&comm->suspended) == suspends)
        result = fail(ncclInvalidUsage, "%s : the communicator is %s suspended", call,
                      suspends ? "already" : "not");
    if (!result)
        result = meet_idle(comm, call);
    if (!result)
        atomic_store(&comm->suspended, suspends);
    communicator_put(comm);
    return result;
}

PUBLIC(ncclCommSuspend);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
    return flags & NCCL_SUSPEND_MEM ? set_suspended(comm, "ncclCommSuspend", true) : ncclSuccess;
}

PUBLIC(ncclCommResume);
ncclResult_t ncclCommResume(ncclComm_t comm)
{
    return set_suspended(comm, "ncclCommResume", false);
}

static uint64_t memory_statistic(const struct ncclComm *comm, ncclCommMemStat_t stat)
{
    uint64_t all = comm->segment.bytes;
    uint64_t persistent = (uint64_t)(comm->segment.stages - (char *)comm->segment.header);

    switch (stat) {
    case ncclStatGpuMemSuspend:
        return all - persistent;
    case ncclStatGpuMemSuspended:
        return atomic_load(&comm->suspended);
    case ncclStatGpuMemPersist:
        return persistent;
    default:
        return all;
    }
}

PUBLIC(ncclCommMemStats);
ncclResult_t ncclCommMemStats(ncclComm_t handle, ncclCommMemStat_t stat, uint64_t *value)
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t result;

    if (!comm)
        return fail(ncclInvalidArgument,
                    "ncclCommMemStats : comm argument is NULL or not a communicator");
    result = communicator_ready(comm);
    if (!result && (!value || stat < ncclStatGpuMemSuspend || stat > ncclStatGpuMemTotal))
        result =
            fail(ncclInvalidArgument, "ncclCommMemStats : no value, or no statistic %d", (int)stat);
    if (!result)
        *value = memory_statistic(comm, stat);
    communicator_put(comm);
    return result;
}
