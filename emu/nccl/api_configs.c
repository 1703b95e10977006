/* api_configs.c: the collectives with a configuration of their own (2.31). There are no channels
 * here that it could choose, so it is only checked; its event is recorded before the launch, as
 * NCCL does with CUDA before 12.3. */
#include <string.h>

#include "abi/nccl_later.h"
#include "emu/core.h"
#include "emu/core/event.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/group.h"

/* What the caller's release of NCCL has of it; `size` says how much. */
static struct nccl_collective_config read_config(const void *given)
{
    struct nccl_collective_config config = {.minCTAs = NCCL_CONFIG_UNDEF_INT,
                                            .maxCTAs = NCCL_CONFIG_UNDEF_INT,
                                            .nvlsCTAs = NCCL_CONFIG_UNDEF_INT,
                                            .cgaClusterSize = NCCL_CONFIG_UNDEF_INT,
                                            .CTAPolicy = NCCL_CONFIG_UNDEF_INT};
    size_t size;

    memcpy(&size, given, sizeof(size));
    memcpy(&config, given, size < sizeof(config) ? size : sizeof(config));
    return config;
}

static ncclResult_t check_config_of(const char *call, const struct nccl_collective_config *config)
{
    static const ncclConfig_t initialized = NCCL_CONFIG_INITIALIZER;
    bool bounded = config->minCTAs != NCCL_CONFIG_UNDEF_INT &&
                   config->maxCTAs != NCCL_CONFIG_UNDEF_INT;

    if (config->magic != initialized.magic)
        return fail(ncclInvalidArgument,
                    "%s : config was not initialized via NCCL_COLLCONFIG_INITIALIZER", call);
    if (bounded && config->minCTAs > config->maxCTAs)
        return fail(ncclInvalidArgument, "%s : minCTAs %d is above maxCTAs %d", call,
                    config->minCTAs, config->maxCTAs);
    return ncclSuccess;
}

static ncclResult_t apply_config(const char *call, const void *given, cudaStream_t stream)
{
    struct nccl_collective_config config;
    ncclResult_t result;
    int error;

    if (!given)
        return ncclSuccess;
    config = read_config(given);
    result = check_config_of(call, &config);
    if (result || !config.launchCompletionEvent)
        return result;
    struct emu_event *event = emu_event_find(config.launchCompletionEvent);
    struct emu_stream *emulated = emu_stream_find(stream);

    error = event && emulated ? emu_event_record(event, emulated) : cudaErrorInvalidResourceHandle;
    return error ? fail(ncclUnhandledCudaError, "%s : Cuda failure %d with its event", call, error)
                 : ncclSuccess;
}

/* CONFIGURED(function, the same without a configuration, parameters, its arguments) */
#define CONFIGURED(function, plain, parameters, arguments)                 \
    PUBLIC(function);                                                      \
    ncclResult_t function parameters                                       \
    {                                                                      \
        ncclResult_t result = apply_config(&#function[4], config, stream); \
        group_enter();                                                     \
        return group_leave(result ? result : plain arguments);             \
    }

CONFIGURED(ncclAllReduceConfig, ncclAllReduce,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
            ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, op, comm, stream))
CONFIGURED(ncclBroadcastConfig, ncclBroadcast,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root,
            ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, root, comm, stream))
CONFIGURED(ncclReduceConfig, ncclReduce,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
            int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, op, root, comm, stream))
CONFIGURED(ncclAllGatherConfig, ncclAllGather,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, comm, stream))
CONFIGURED(ncclReduceScatterConfig, ncclReduceScatter,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
            ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, op, comm, stream))
CONFIGURED(ncclAlltoAllConfig, ncclAlltoAll,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, comm, stream))
CONFIGURED(ncclGatherConfig, ncclGather,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root,
            ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, root, comm, stream))
CONFIGURED(ncclScatterConfig, ncclScatter,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root,
            ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, root, comm, stream))
