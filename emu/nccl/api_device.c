/* api_device.c: the exported functions of nccl_device.h. Teams are reported as they are: one
 * machine, all of whose members reach each other. Kernels that communicate themselves need real
 * device code.
 */
#include <nccl.h>

#include "emu/core.h"
#include "emu/nccl/communicator.h"
#include "emu/nccl/errors.h"

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

static ncclResult_t no_device_api(const char *call)
{
    emu_unsupported(call, "kernels that communicate by themselves need a GPU");
    return fail(ncclInvalidUsage, "%s : the emulated machine has no device-side NCCL", call);
}

/* UNSUPPORTED(function, parameters): never reads them. */
#define UNSUPPORTED(function, ...)       \
    ncclResult_t function(__VA_ARGS__);  \
    PUBLIC(function);                    \
    ncclResult_t function(__VA_ARGS__)   \
    {                                    \
        return no_device_api(#function); \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
UNSUPPORTED(ncclDevCommCreate, ncclComm_t comm, const void *requirements, void *device_comm)
UNSUPPORTED(ncclDevCommDestroy, ncclComm_t comm, const void *device_comm)
UNSUPPORTED(ncclGinBarrierCreateRequirement, ncclComm_t comm, struct ncclTeam team, int barriers,
            void *handle, void *requirement)
UNSUPPORTED(ncclLsaBarrierCreateRequirement, struct ncclTeam team, int barriers, void *handle,
            void *requirement)
UNSUPPORTED(ncclLLA2ACreateRequirement, int blocks, int slots, void *handle, void *requirement)

int ncclLLA2ACalcSlots(int elements, int element_bytes);
PUBLIC(ncclLLA2ACalcSlots);
int ncclLLA2ACalcSlots(int elements, int element_bytes)
{
    no_device_api("ncclLLA2ACalcSlots");
    return 0;
}
