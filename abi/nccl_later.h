/* nccl_later.h: what nccl.h of NCCL 2.29 to 2.32 declares beyond that of 2.28, for builds whose
 * nccl.h is older, and what RCCL's declares beyond both. The numbers, the layouts and the order of
 * the arguments are NCCL's interface (nccl.h of 2.29.7, 2.30.7 and 2.32.3); a newer nccl.h is taken
 * as it is. */
#ifndef DDPCHECK_ABI_NCCL_LATER_H
#define DDPCHECK_ABI_NCCL_LATER_H

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flag of ncclCommSuspend: give back the memory that can be given back. Without it the call does
 * nothing. */
#ifndef NCCL_SUSPEND_MEM
#define NCCL_SUSPEND_MEM 0x01
#endif

/* Flags of a window, as far as 2.32 has them: symmetric, strictly ordered, for GIN
 * alone, for counted CFT alone. */
#define NCCL_WIN_ALL_FLAGS 0x0f

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 7)
/* What ncclCommMemStats is asked for: bytes, but for ncclStatGpuMemSuspended, which is 0 or 1. */
typedef enum {
    ncclStatGpuMemSuspend = 0,
    ncclStatGpuMemSuspended = 1,
    ncclStatGpuMemPersist = 2,
    ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;
#endif

/* What ncclCommQueryProperties fills in as far as `size` goes: ncclCommProperties_t of 2.32's
 * nccl_device.h, where the types of GIN are enumerations. */
struct nccl_comm_properties {
    size_t size;
    unsigned int magic, version;
    int rank, nRanks, cudaDev, nvmlDev;
    bool deviceApiSupport, multimemSupport;
    int ginType, nLsaTeams;
    bool hostRmaSupport;
    int railedGinType;
    uint64_t commHash;
    int ginMinStride, ginConnectionType;
    bool ginSupport[64];
    size_t devCommRuntimeVersionSize;
    bool cftSupport, cftMulticastSupport, cftCountedSupport;
};

/* ncclCollConfig_t of 2.32; that of 2.31 is the beginning of it. An unset integer is
 * NCCL_CONFIG_UNDEF_INT. It must be the same on all ranks. */
struct nccl_collective_config {
    size_t size;
    unsigned int magic, version;
    void *ext;
    int minCTAs, maxCTAs, nvlsCTAs, cgaClusterSize;
    const char *algSelection;
    int forceAlgSelection, CTAPolicy;
    uint64_t userProfilerTag;
    cudaEvent_t launchCompletionEvent;
};

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 31, 0)
typedef struct nccl_collective_config ncclCollConfig_t;
#define NCCL_COLLCONFIG_INITIALIZER                                                               \
    {                                                                                             \
        .size = sizeof(ncclCollConfig_t), .magic = 0xcafebeef, .version = NCCL_VERSION(2, 32, 3), \
        .minCTAs = NCCL_CONFIG_UNDEF_INT, .maxCTAs = NCCL_CONFIG_UNDEF_INT,                       \
        .nvlsCTAs = NCCL_CONFIG_UNDEF_INT, .cgaClusterSize = NCCL_CONFIG_UNDEF_INT,               \
        .forceAlgSelection = 1, .CTAPolicy = NCCL_CONFIG_UNDEF_INT,                               \
    }
#endif

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 0)
/* ncclWaitSignal waits for opCnt signals of the rank `peer`. */
typedef struct {
    int opCnt;
    int peer;
    int sigIdx;
    int ctx;
} ncclWaitSignalDesc_t;
#endif

/* Writes into the window that `peer` registered together with this rank's peerWin, then adds a
 * signal there. Calls to one peer on one context take effect in order. */
ncclResult_t ncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                           ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
                           unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                        cudaStream_t stream);
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm,
                            cudaStream_t stream);
struct ncclCommProperties;
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, struct ncclCommProperties *props);
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);

/* Old ranks give their communicator, rank -1, and no id (the one that made it may); new ranks give
 * comm NULL, the id of ncclCommGetUniqueId, and a rank that is not below the old size. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank,
                          ncclComm_t *newcomm, ncclConfig_t *config);

/* The collectives with a configuration, which may be NULL. */
ncclResult_t ncclAllReduceConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
                                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t *config);
ncclResult_t ncclBroadcastConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
                                 int root, ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t *config);
ncclResult_t ncclReduceConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
                              ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t *config);
ncclResult_t ncclAllGatherConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
                                 ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t *config);
ncclResult_t ncclReduceScatterConfig(const void *send, void *recv, size_t count,
                                     ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                     cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclAlltoAllConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
                                ncclComm_t comm, cudaStream_t stream,
                                const ncclCollConfig_t *config);
ncclResult_t ncclGatherConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
                              int root, ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t *config);
ncclResult_t ncclScatterConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
                               int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t *config);

/* RCCL's names: ncclAlltoAll, and the same with a number of elements and their place for each rank.
 */
ncclResult_t ncclAllToAll(const void *send, void *recv, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllToAllv(const void *send, const size_t *send_counts, const size_t *send_offsets,
                           void *recv, const size_t *recv_counts, const size_t *recv_offsets,
                           ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);

#endif
