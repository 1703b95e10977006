/* names.c: what the numbers in records are called, and calls with their arguments as text. */
#include "lib/trace/names.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

static const char *const datatypes[TYPE_COUNT] = {
#define DATATYPE(number, name, bytes, nccl, torch) [TYPE_##number] = name,
#include "lib/trace/datatypes.def"
#undef DATATYPE
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

static const char *const nccl_results[] = {
    "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
    "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
    "ncclRemoteError",   "ncclInProgress",         "ncclTimeout",
};

const char *api_name(unsigned api)
{
    return api < API_COUNT && apis[api].name ? apis[api].name : "unknown call";
}

char *result_name(unsigned api, int result, char *text, size_t bytes)
{
    bool is_nccl = strncmp(api_name(api), "nccl", strlen("nccl")) == 0;
    if (is_nccl && result >= 0 && (size_t)result < COUNT(nccl_results))
        snprintf(text, bytes, "%s", nccl_results[result]);
    else
        snprintf(text, bytes, "%s error %d", is_nccl ? "NCCL" : "CUDA", result);
    return text;
}

const char *api_shown_name(unsigned api)
{
    return api_name(api) + strspn(api_name(api), "_");
}

enum api_class api_class_of(unsigned api)
{
    return api < API_COUNT ? apis[api].class : CLASS_NONE;
}

bool record_shows_activity(const struct record *record)
{
    return api_class_of(record->api) != CLASS_NOTICE && record->api != API_cudaStreamQuery &&
           record->api != API_cudaEventQuery;
}

const char *datatype_name(unsigned datatype)
{
    if (datatype < TYPE_COUNT)
        return datatypes[datatype];
    return datatype == TYPE_NONE ? "no datatype" : "unknown datatype";
}

const char *redop_name(unsigned redop)
{
    if (redop < COUNT(redops))
        return redops[redop];
    return redop == REDOP_NONE ? "no operator" : "unknown operator";
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

/* What is no function of its own. */
static const char *other_name(const struct record *record)
{
    bool driver = record->flags & RECORD_FLAG_DRIVER;
    if (record->api == API_cudaStreamQuery_loop)
        return driver ? "a loop over cuStreamQuery" : "a loop over cudaStreamQuery";
    if (record->api == API_cudaEventQuery_loop)
        return driver ? "a loop over cuEventQuery" : "a loop over cudaEventQuery";
    if (record->api == API_cudaMemcpyAsync_to_pageable && !driver)
        return "cudaMemcpyAsync";
    return NULL;
}

const char *record_call(const struct record *record)
{
    const char *other = other_name(record);
    if (other)
        return other;
    const char *driver = record->flags & RECORD_FLAG_DRIVER && record->api < API_COUNT
                             ? driver_names[record->api]
                             : NULL;
    return driver ? driver : api_name(record->api);
}

char *signal_text(int signal, char *text, size_t bytes)
{
    static const struct {
        int signal;
        const char *name;
    } names[] = {
        {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
        {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
        {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
        {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
        {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},
    };
    snprintf(text, bytes, "signal %d", signal);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].signal == signal)
            snprintf(text, bytes, "%s", names[i].name);
    return text;
}
