/* fake_nccl.c: an NCCL of one process that sends nothing: communicators that know their ranks, and
 * results on demand. FAKE_NCCL_RESULT: what collectives return. */
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

struct ncclComm {
    int rank, nranks, device, children;
    ncclResult_t state;
};

static ncclResult_t wanted_result(void)
{
    const char *text = getenv("FAKE_NCCL_RESULT");
    return text ? (ncclResult_t)atoi(text) : ncclSuccess;
}

static ncclComm_t make(int rank, int nranks, int device)
{
    ncclComm_t comm = malloc(sizeof *comm);
    *comm = (struct ncclComm){.rank = rank, .nranks = nranks, .device = device};
    return comm;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 7, sizeof *id);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    int device = 0;
    (void)id;
    cudaGetDevice(&device);
    *comm = make(rank, nranks, device);
    if (config && !config->blocking)
        return (*comm)->state = ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(comm, nranks, id, rank,
                                  NULL); /* through the shim again, as NCCL's own may */
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    for (int i = 0; i < count; i++)
        comms[i] = make(i, count, devices ? devices[i] : i);
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *child,
                           ncclConfig_t *config)
{
    (void)config;
    *child = color == NCCL_SPLIT_NOCOLOR ? NULL : make(key, 2, comm->device);
    return ncclSuccess;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *child,
                            ncclConfig_t *config, int flags)
{
    (void)excluded, (void)config, (void)flags;
    *child = make(comm->rank, comm->nranks - count, comm->device);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->nranks;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm->device;
    return ncclSuccess;
}

/* The second question finds a nonblocking communicator ready. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    *state = comm->state;
    comm->state = ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    (void)scalar, (void)type, (void)residence, (void)comm;
    *op = (ncclRedOp_t)9;
    return ncclSuccess;
}

/* NCCL calls CUDA inside; such calls are none of the program's. */
ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    (void)type, (void)op, (void)comm;
    cudaMemcpyAsync(recv, send, count, cudaMemcpyDeviceToDevice, stream);
    return wanted_result();
}
