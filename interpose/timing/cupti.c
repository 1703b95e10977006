/* cupti.c: opens CUPTI, unless a profiler has it, and switches the records on. */
#include "interpose/timing/cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "interpose/real/resolve.h"
#include "interpose/shim/environment.h"

/* cuptiGetVersion's number of CUDA 9.0 (cupti_version.h), whose records later versions extend. */
enum { VERSION_FIRST = 10 };

/* Profilers that CUPTI's injection brings into a process (Nsight Systems and Compute). */
static const char *find_injected_profiler(void)
{
    static const char *const names[] = {"CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID",
                                        "NV_NSIGHT_INJECTION_TRANSPORT_TYPE",
                                        "NV_COMPUTE_PROFILER_PERFWORKS_DIR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = environment_get(names[i]);
        if (value && *value)
            return names[i];
    }
    return NULL;
}

/* That of the process, if it has one: PyTorch is linked with it. */
static void *open_cupti_library(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    enum { NAMES = sizeof names / sizeof *names };
    void *handle = NULL;
    for (int i = 0; i < NAMES && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    for (int i = 0; i < NAMES && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        dlerror(); /* the program did not call dlopen */
    return handle;
}

static const char *find_cupti_functions(struct cupti *cupti, void *handle)
{
    resolve_dlsym_function *find = resolve_dlsym();
    const char *missing = find ? NULL : "dlsym";
#define CUPTI_FUNCTION(name)                                                 \
    if (!missing && !(cupti->name = (__typeof__(&name))find(handle, #name))) \
        missing = #name;
    CUPTI_FUNCTIONS
#undef CUPTI_FUNCTION
    dlerror();
    return missing;
}

static void call_began(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                       const void *parameters)
{
    const CUpti_CallbackData *call = parameters;
    (void)domain, (void)id;
    if (call->callbackSite == CUPTI_API_ENTER)
        ((cupti_launch_function *)data)(call->correlationId);
}

static bool subscribe_cupti(struct cupti *cupti, cupti_launch_function *launched, char *why)
{
    uint32_t version = 0;
    if (cupti->cuptiGetVersion(&version) != CUPTI_SUCCESS || version < VERSION_FIRST) {
        snprintf(why, CUPTI_WHY_BYTES, "CUPTI version %u is older than that of CUDA 9.0", version);
        return false;
    }
    CUptiResult result = cupti->cuptiSubscribe(&cupti->subscriber, call_began, (void *)launched);
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        snprintf(why, CUPTI_WHY_BYTES, "a profiler in this process has CUPTI");
    else if (result != CUPTI_SUCCESS)
        snprintf(why, CUPTI_WHY_BYTES, "cuptiSubscribe failed with result %d", (int)result);
    return result == CUPTI_SUCCESS;
}

bool cupti_open(struct cupti *cupti, cupti_launch_function *launched, char why[CUPTI_WHY_BYTES])
{
    const char *profiler = find_injected_profiler();
    if (profiler) {
        snprintf(why, CUPTI_WHY_BYTES, "a profiler has CUPTI (%s is set)", profiler);
        return false;
    }
    void *handle = open_cupti_library();
    if (!handle) {
        snprintf(why, CUPTI_WHY_BYTES, "there is no libcupti.so.13 and no libcupti.so.12");
        return false;
    }
    const char *missing = find_cupti_functions(cupti, handle);
    if (missing)
        snprintf(why, CUPTI_WHY_BYTES, "the library found as libcupti has no %s", missing);
    if (missing || !subscribe_cupti(cupti, launched, why)) {
        dlclose(handle);
        return false;
    }
    return true;
}

/* The calls by which NCCL puts kernels on a stream. cuptiActivityEnableDriverApi is no
 * way to have only their records: CUPTI 13.0 wrote none (an H200, driver 580), and records of all
 * calls are many. */
static CUptiResult watch_launches(const struct cupti *cupti)
{
    static const struct {
        CUpti_CallbackDomain domain;
        CUpti_CallbackId id;
    } calls[] = {
#define DRIVER_CALL(name)                                         \
    {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##name}, \
        {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##name##_ptsz}
        DRIVER_CALL(cuLaunchKernel),
        DRIVER_CALL(cuLaunchKernelEx),
        DRIVER_CALL(cuLaunchCooperativeKernel),
#undef DRIVER_CALL
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060},
    };
    CUptiResult result = CUPTI_SUCCESS;
    for (size_t i = 0; i < sizeof calls / sizeof *calls && result == CUPTI_SUCCESS; i++)
        result = cupti->cuptiEnableCallback(1, cupti->subscriber, calls[i].domain, calls[i].id);
    return result;
}

bool cupti_record(struct cupti *cupti, CUpti_BuffersCallbackRequestFunc requested,
                  CUpti_BuffersCallbackCompleteFunc completed, char why[CUPTI_WHY_BYTES])
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
    size_t enabled = 0;
    CUptiResult result = cupti->cuptiActivityRegisterCallbacks(requested, completed);
    while (result == CUPTI_SUCCESS && enabled < sizeof kinds / sizeof *kinds) {
        result = cupti->cuptiActivityEnable(kinds[enabled]);
        enabled += result == CUPTI_SUCCESS;
    }
    if (result == CUPTI_SUCCESS)
        result = watch_launches(cupti);
    if (result == CUPTI_SUCCESS)
        return true;
    while (enabled > 0)
        cupti->cuptiActivityDisable(kinds[--enabled]);
    cupti->cuptiUnsubscribe(cupti->subscriber);
    snprintf(why, CUPTI_WHY_BYTES, "CUPTI refused to record kernels (result %d)", (int)result);
    return false;
}
