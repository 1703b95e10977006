#include "lib/trace/names.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

struct api_entry {
    const char *name;
    enum api_class class;
};

static const struct api_entry apis[API_COUNT] = {
#define API(number, name, class) [number] = {#name, CLASS_##class},
#include "lib/trace/apis.def"
#undef API
};

static const struct {
    const char *name;
    size_t bytes;
} datatypes[TYPE_COUNT] = {
    [TYPE_INT8] = {"int8", 1},
    [TYPE_UINT8] = {"uint8", 1},
    [TYPE_INT32] = {"int32", 4},
    [TYPE_UINT32] = {"uint32", 4},
    [TYPE_INT64] = {"int64", 8},
    [TYPE_UINT64] = {"uint64", 8},
    [TYPE_FLOAT16] = {"float16", 2},
    [TYPE_FLOAT32] = {"float32", 4},
    [TYPE_FLOAT64] = {"float64", 8},
    [TYPE_BFLOAT16] = {"bfloat16", 2},
    [TYPE_FLOAT8E4M3] = {"float8e4m3", 1},
    [TYPE_FLOAT8E5M2] = {"float8e5m2", 1},
};

static const char *const redops[] = {
    [REDOP_SUM] = "sum",
    [REDOP_PROD] = "prod",
    [REDOP_MAX] = "max",
    [REDOP_MIN] = "min",
    [REDOP_AVG] = "avg",
    [REDOP_PREMULSUM] = "premulsum",
    [REDOP_UNKNOWN] = "unknown operator",
};

static const char *const memory_types[] = {
    [MEMORY_UNKNOWN] = "unknown memory",
    [MEMORY_HOST_PAGEABLE] = "pageable host",
    [MEMORY_HOST_PINNED] = "pinned host",
    [MEMORY_DEVICE] = "device",
    [MEMORY_MANAGED] = "managed",
    [MEMORY_HOST_SHARED] = "shared host",
    [MEMORY_DEVICE_MAPPED] = "mapped device",
};

static const char *const phases[] = {
    [RECORD_POINT] = "point",
    [RECORD_ENTER] = "enter",
    [RECORD_LEAVE] = "leave",
};

const char *api_name(unsigned api)
{
    return api < API_COUNT && apis[api].name ? apis[api].name : "unknown call";
}

enum api_class api_class_of(unsigned api)
{
    return api < API_COUNT ? apis[api].class : CLASS_NONE;
}

const char *datatype_name(unsigned datatype)
{
    return datatype < TYPE_COUNT   ? datatypes[datatype].name
           : datatype == TYPE_NONE ? "no datatype"
                                   : "unknown datatype";
}

size_t datatype_bytes(unsigned datatype)
{
    return datatype < TYPE_COUNT ? datatypes[datatype].bytes : 0;
}

const char *redop_name(unsigned redop)
{
    return redop < COUNT(redops) ? redops[redop]
           : redop == REDOP_NONE ? "no operator"
                                 : "unknown operator";
}

const char *memory_type_name(unsigned type)
{
    return type < COUNT(memory_types) ? memory_types[type] : "unknown memory";
}

const char *record_phase_name(unsigned phase)
{
    return phase < COUNT(phases) ? phases[phase] : "unknown phase";
}

bool api_has_redop(unsigned api)
{
    return api == API_ncclAllReduce || api == API_ncclReduce || api == API_ncclReduceScatter;
}

bool api_has_root(unsigned api)
{
    return api == API_ncclBroadcast || api == API_ncclBcast || api == API_ncclReduce ||
           api == API_ncclGather || api == API_ncclScatter;
}

/* What an importer's source does not say is left out. */
static int op_text(const struct record *record, const char *name, char *text, size_t bytes)
{
    char count[32] = "", datatype[32] = "", redop[32] = "", root[32] = "";
    if (!(record->op.flags & RECORD_OP_NO_COUNT))
        snprintf(count, sizeof count, ", count=%" PRIu64, record->op.count);
    if (record->op.datatype != TYPE_NONE)
        snprintf(datatype, sizeof datatype, ", %s", datatype_name(record->op.datatype));
    if (api_has_redop(record->api) && !(record->op.redop == REDOP_UNKNOWN && !record->op.scalar))
        snprintf(redop, sizeof redop, ", %s", redop_name(record->op.redop));
    if (api_has_root(record->api) && !(record->op.flags & RECORD_OP_NO_ROOT))
        snprintf(root, sizeof root, ", root=%d", record->op.root);
    else if (api_class_of(record->api) == CLASS_P2P)
        snprintf(root, sizeof root, ", peer=%d", record->op.root);
    const char *const parts[] = {count, datatype, redop, root};
    char all[128] = "";
    for (size_t i = 0, at = 0; i < sizeof parts / sizeof *parts; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s", parts[i]);
    return *all ? snprintf(text, bytes, "%s(%s)", name, all + 2)
                : snprintf(text, bytes, "%s", name);
}

static int comm_text(const struct record *record, const char *name, char *text, size_t bytes)
{
    if (record->api == API_ncclCommSplit)
        return snprintf(text, bytes, "%s(color=%d, key=%d)", name, record->comm.color,
                        record->comm.key);
    if (record->comm.nranks > 0 && record->comm.rank >= 0)
        return snprintf(text, bytes, "%s(nranks=%d, rank=%d)", name, record->comm.nranks,
                        record->comm.rank);
    if (record->comm.nranks > 0)
        return snprintf(text, bytes, "%s(nranks=%d)", name, record->comm.nranks);
    return snprintf(text, bytes, "%s", name);
}

static int bytes_text(const char *name, uint64_t count, char *text, size_t bytes)
{
    return count ? snprintf(text, bytes, "%s(bytes=%" PRIu64 ")", name, count)
                 : snprintf(text, bytes, "%s", name);
}

/* The driver's functions under the numbers of the runtime's that mean the same. */
static const char *const driver_names[API_COUNT] = {
    [API_cudaStreamSynchronize] = "cuStreamSynchronize",
    [API_cudaDeviceSynchronize] = "cuCtxSynchronize",
    [API_cudaEventSynchronize] = "cuEventSynchronize",
    [API_cudaMemcpy] = "cuMemcpy",
    [API_cudaMemcpy2D] = "cuMemcpy2D",
    [API_cudaMemset] = "cuMemset",
    [API_cudaFree] = "cuMemFree",
    [API_cudaFreeHost] = "cuMemFreeHost",
    [API_cudaMemcpyPeer] = "cuMemcpyPeer",
    [API_cudaMemcpyAsync_to_pageable] = "cuMemcpyAsync",
    [API_cudaMemcpy3D] = "cuMemcpy3D",
    [API_cudaMemset2D] = "cuMemsetD2D",
    [API_cudaStreamCreate] = "cuStreamCreate",
    [API_cudaStreamCreateWithFlags] = "cuStreamCreate",
    [API_cudaStreamCreateWithPriority] = "cuStreamCreateWithPriority",
    [API_cudaStreamDestroy] = "cuStreamDestroy",
    [API_cudaEventCreate] = "cuEventCreate",
    [API_cudaEventCreateWithFlags] = "cuEventCreate",
    [API_cudaEventDestroy] = "cuEventDestroy",
    [API_cudaEventRecord] = "cuEventRecord",
    [API_cudaEventRecordWithFlags] = "cuEventRecordWithFlags",
    [API_cudaStreamWaitEvent] = "cuStreamWaitEvent",
    [API_cudaEventQuery] = "cuEventQuery",
    [API_cudaStreamQuery] = "cuStreamQuery",
    [API_cudaMalloc] = "cuMemAlloc",
    [API_cudaMallocAsync] = "cuMemAllocAsync",
    [API_cudaFreeAsync] = "cuMemFreeAsync",
    [API_cudaMallocHost] = "cuMemAllocHost",
    [API_cudaHostAlloc] = "cuMemHostAlloc",
    [API_cudaMallocManaged] = "cuMemAllocManaged",
    [API_cudaHostRegister] = "cuMemHostRegister",
    [API_cudaHostUnregister] = "cuMemHostUnregister",
    [API_cudaMallocPitch] = "cuMemAllocPitch",
    [API_cudaMallocFromPoolAsync] = "cuMemAllocFromPoolAsync",
    [API_cudaIpcGetMemHandle] = "cuIpcGetMemHandle",
    [API_cudaIpcOpenMemHandle] = "cuIpcOpenMemHandle",
    [API_cudaIpcCloseMemHandle] = "cuIpcCloseMemHandle",
    [API_cudaIpcOpenEventHandle] = "cuIpcOpenEventHandle",
    [API_cudaMemcpyAsync] = "cuMemcpyAsync",
    [API_cudaMemsetAsync] = "cuMemsetAsync",
    [API_cudaMemcpyPeerAsync] = "cuMemcpyPeerAsync",
    [API_cudaMemcpy2DAsync] = "cuMemcpy2DAsync",
    [API_cudaMemcpy3DAsync] = "cuMemcpy3DAsync",
    [API_cudaMemset2DAsync] = "cuMemsetD2DAsync",
    [API_cudaLaunchKernel] = "cuLaunchKernel",
    [API_cudaLaunchKernelExC] = "cuLaunchKernelEx",
    [API_cudaLaunchCooperativeKernel] = "cuLaunchCooperativeKernel",
    [API_cudaLaunchHostFunc] = "cuLaunchHostFunc",
    [API_cudaStreamAddCallback] = "cuStreamAddCallback",
    [API_cudaStreamBeginCapture] = "cuStreamBeginCapture",
    [API_cudaStreamEndCapture] = "cuStreamEndCapture",
    [API_cudaGraphInstantiate] = "cuGraphInstantiate",
    [API_cudaGraphLaunch] = "cuGraphLaunch",
    [API_cudaGraphExecDestroy] = "cuGraphExecDestroy",
    [API_cudaGraphDestroy] = "cuGraphDestroy",
    [API_cudaGraphExecUpdate] = "cuGraphExecUpdate",
    [API_cudaGraphClone] = "cuGraphClone",
    [API_cudaGraphAddNode] = "cuGraphAddNode",
    [API_cudaGraphExecSetParams] = "cuGraphExecNodeSetParams",
};

const char *record_call(const struct record *record)
{
    const char *driver = record->flags & RECORD_FLAG_DRIVER && record->api < API_COUNT
                             ? driver_names[record->api]
                             : NULL;
    return driver ? driver : api_name(record->api);
}

char *record_text(const struct record *record, char *text, size_t bytes)
{
    const char *name = record_call(record);
    if (record->phase == RECORD_LEAVE) { /* the arguments are with the ENTER */
        snprintf(text, bytes, "%s", name);
        return text;
    }
    switch (api_class_of(record->api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
        op_text(record, name, text, bytes);
        break;
    case CLASS_COMM:
        comm_text(record, name, text, bytes);
        break;
    case CLASS_WAIT:
        bytes_text(name, record->wait.bytes, text, bytes);
        break;
    case CLASS_MEMORY:
        bytes_text(name, record->memory.bytes, text, bytes);
        break;
    case CLASS_COPY:
        bytes_text(name,
                   record->copy.height ? record->copy.bytes * record->copy.height
                                       : record->copy.bytes,
                   text, bytes);
        break;
    default:
        snprintf(text, bytes, "%s", name);
    }
    return text;
}
