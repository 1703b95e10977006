/* The host's calls of NCCL's examples of the device API and of fused kernels: properties, windows, a
 * device communicator, and all of it given back, by one thread for each device.
 * expect: none */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, BYTES = COUNT * sizeof(float) };

struct ncclDevCommRequirements;
struct ncclDevComm;
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
                               struct ncclDevComm *made);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *made);

static void check_properties(struct rank *me)
{
    struct nccl_comm_properties props = {
        .size = sizeof(props), .magic = 0xcafebeef, .version = NCCL_VERSION(2, 32, 3)};

    NCCL(ncclCommQueryProperties(me->comm, (void *)&props));
    if (!props.deviceApiSupport || props.nLsaTeams != 1 || props.nRanks != me->ranks)
        suite_failed(__FILE__, __LINE__, "ncclCommQueryProperties", "no device API");
}

static void device_api(struct rank *me)
{
    char requirements[1024] = {0}, made[4096]; /* nccl_device.h is C++ */
    float host[COUNT] = {0}, *send, *recv;
    ncclWindow_t send_window, recv_window;

    check_properties(me);
    NCCL(ncclMemAlloc((void **)&send, BYTES));
    NCCL(ncclMemAlloc((void **)&recv, BYTES));
    NCCL(ncclCommWindowRegister(me->comm, send, BYTES, &send_window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowRegister(me->comm, recv, BYTES, &recv_window, NCCL_WIN_COLL_SYMMETRIC));
    CUDA(cudaMemcpy(send, host, BYTES, cudaMemcpyHostToDevice));
    NCCL(ncclDevCommCreate(me->comm, (void *)requirements, (void *)made));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaMemcpy(host, recv, BYTES, cudaMemcpyDeviceToHost));
    NCCL(ncclDevCommDestroy(me->comm, (void *)made));
    NCCL(ncclCommWindowDeregister(me->comm, send_window));
    NCCL(ncclCommWindowDeregister(me->comm, recv_window));
    NCCL(ncclMemFree(send));
    NCCL(ncclMemFree(recv));
    NCCL(ncclCommFinalize(me->comm));
}

SUITE_CASE(.run = device_api, .ranks = 3, .layout = THREADS);
