/* api_device.c: the exported functions of nccl_device.h. Teams are reported as they are: one
 * machine, all of whose members reach each other. A device communicator is made as far as the host
 * takes part in it: kernels that communicate themselves need real device code, and compute nothing
 * here.
 */
#include <nccl.h>
#include <stdlib.h>

#include "emu/nccl/bootstrap.h"
#include "emu/nccl/communicator.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/group.h"

/* nccl_device.h is C++ in parts; these are its C functions. */
struct ncclTeam {
    int nRanks, rank, stride;
};

struct ncclTeam ncclTeamWorld(ncclComm_t comm);
struct ncclTeam ncclTeamLsa(ncclComm_t comm);
struct ncclTeam ncclTeamRail(ncclComm_t comm);
int ncclTeamRankToWorld(ncclComm_t comm, struct ncclTeam team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, struct ncclTeam team, int rank);

PUBLIC(ncclTeamWorld);
struct ncclTeam ncclTeamWorld(ncclComm_t handle)
{
    struct ncclComm *comm = communicator_get(handle);
    struct ncclTeam team = {0};

    if (!comm)
        return team;
    team = (struct ncclTeam){.nRanks = comm->ranks, .rank = comm->rank, .stride = 1};
    communicator_put(comm);
    return team;
}

PUBLIC(ncclTeamLsa);
struct ncclTeam ncclTeamLsa(ncclComm_t comm)
{
    return ncclTeamWorld(comm);
}

PUBLIC(ncclTeamRail);
struct ncclTeam ncclTeamRail(ncclComm_t comm)
{
    return (struct ncclTeam){.nRanks = 1, .rank = 0, .stride = ncclTeamWorld(comm).nRanks};
}

PUBLIC(ncclTeamRankToWorld);
int ncclTeamRankToWorld(ncclComm_t comm, struct ncclTeam team, int rank)
{
    return ncclTeamWorld(comm).rank + (rank - team.rank) * team.stride;
}

PUBLIC(ncclTeamRankToLsa);
int ncclTeamRankToLsa(ncclComm_t comm, struct ncclTeam team, int rank)
{
    return ncclTeamRankToWorld(comm, team, rank);
}

/* They have members on devices that reach each other by NVLink's compute fabric, which is not
 * emulated. */
static struct ncclTeam team_of_nobody(const char *call)
{
    fail_unsupported(call);
    return (struct ncclTeam){0};
}

struct ncclTeam ncclTeamCft(ncclComm_t comm, int mode);
PUBLIC(ncclTeamCft);
struct ncclTeam ncclTeamCft(ncclComm_t comm, int mode)
{
    (void)comm, (void)mode;
    return team_of_nobody("ncclTeamCft");
}

struct ncclTeam ncclTeamCftMultimem(ncclComm_t comm);
PUBLIC(ncclTeamCftMultimem);
struct ncclTeam ncclTeamCftMultimem(ncclComm_t comm)
{
    (void)comm;
    return team_of_nobody("ncclTeamCftMultimem");
}

int ncclLLA2ACalcSlots(int elements, int element_bytes);
PUBLIC(ncclLLA2ACalcSlots);
int ncclLLA2ACalcSlots(int elements, int element_bytes)
{
    (void)elements, (void)element_bytes;
    fail_unsupported("ncclLLA2ACalcSlots");
    return 0;
}

/* --- device communicators --- */

/* Waits for all members, at the end of a group as NCCL. */
struct device_job {
    struct group_job job;
    struct ncclComm *comm; /* a reference */
    uint64_t number;
    bool ran;
};

static ncclResult_t device_run(struct group_job *job)
{
    struct device_job *device = (struct device_job *)job;
    struct ncclComm *comm = device->comm;

    device->ran = true;
    if (!communicator_host_enter(comm, device->number) || !bootstrap_meet(comm))
        return fail(ncclInternalError, "ncclDevCommCreate : the communicator was aborted");
    communicator_host_leave(comm);
    if (!job->blocking)
        atomic_store(&comm->state, ncclSuccess);
    return ncclSuccess;
}

static void device_free(struct group_job *job)
{
    struct device_job *device = (struct device_job *)job;

    if (!device->ran) {
        communicator_host_return(device->comm, device->number);
        if (!job->blocking)
            atomic_store(&device->comm->state, ncclSuccess);
    }
    communicator_put(device->comm);
    free(job);
}

static ncclResult_t queue_device_job(struct ncclComm *comm)
{
    struct device_job *device;
    ncclResult_t result = communicator_ready(comm);

    if (result)
        return result;
    device = calloc(1, sizeof(*device));
    if (!device)
        return fail(ncclSystemError, "ncclDevCommCreate : out of memory");
    communicator_hold(comm);
    device->comm = comm;
    device->number = communicator_host_number(comm);
    device->job = (struct group_job){
        .run = device_run, .free = device_free, .blocking = communicator_blocking(comm)};
    if (!device->job.blocking)
        atomic_store(&comm->state, ncclInProgress);
    group_add_job(&device->job);
    return ncclSuccess;
}

/* nccl_device.h says what is in them; the layouts change with NCCL's versions, and only kernels
 * read the result. */
struct ncclDevCommRequirements;
struct ncclDevComm;
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
                               struct ncclDevComm *made);
PUBLIC(ncclDevCommCreate);
ncclResult_t ncclDevCommCreate(ncclComm_t handle,
                               const struct ncclDevCommRequirements *requirements,
                               struct ncclDevComm *made)
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t result;

    group_enter();
    if (!comm || !requirements || !made)
        result = fail(ncclInvalidArgument, "ncclDevCommCreate : an argument is NULL, or comm is "
                                           "not a communicator");
    else
        result = queue_device_job(comm);
    if (comm)
        communicator_put(comm);
    return group_leave(result);
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *made);
PUBLIC(ncclDevCommDestroy);
ncclResult_t ncclDevCommDestroy(ncclComm_t handle, const struct ncclDevComm *made)
{
    struct ncclComm *comm = communicator_get(handle);

    if (!comm || !made)
        return fail(ncclInvalidArgument, "ncclDevCommDestroy : an argument is NULL, or comm is "
                                         "not a communicator");
    communicator_put(comm);
    return ncclSuccess;
}
