/* errors.c: the last error of a thread or communicator, and the warnings of NCCL_DEBUG. */
#include "emu/nccl/errors.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "emu/core.h"

static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `last` */
static char last[1024];

static int warns(void)
{
    const char *level = getenv("NCCL_DEBUG");

    return level && (!strcasecmp(level, "WARN") || !strcasecmp(level, "INFO") ||
                     !strcasecmp(level, "TRACE"));
}

ncclResult_t fail(ncclResult_t result, const char *format, ...)
{
    char text[sizeof(last)], host[64] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pthread_mutex_lock(&last_lock);
    memcpy(last, text, strlen(text) + 1);
    pthread_mutex_unlock(&last_lock);
    if (warns()) {
        gethostname(host, sizeof(host) - 1);
        printf("\n%s:%d:%d [%d] NCCL WARN %s\n", host, getpid(), gettid(), emu_device_current(),
               text);
        fflush(stdout);
    }
    return result;
}

int fail_unsupported(const char *call)
{
    emu_unsupported(call, "the emulated NCCL does not have it");
    return fail(ncclInvalidUsage, "%s : the emulated NCCL does not have it", call);
}

PUBLIC(ncclGetLastError);
const char *ncclGetLastError(ncclComm_t comm)
{
    static _Thread_local char copy[sizeof(last)];

    (void)comm; /* NCCL keeps one for the whole process as well */
    pthread_mutex_lock(&last_lock);
    memcpy(copy, last, sizeof(copy));
    pthread_mutex_unlock(&last_lock);
    return copy;
}

PUBLIC(ncclGetErrorString);
const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[ncclNumResults] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        [ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        [ncclInternalError] = "internal error - please report this issue to the NCCL developers",
        [ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
        [ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
        [ncclRemoteError] = "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress",
    };

    return (int)result >= 0 && result < ncclNumResults ? texts[result] : "unknown result code";
}

/* DDPCHECK_EMU_NCCL_VERSION=22703: rules that one release alone has. */
int emulated_nccl_version(void)
{
    const char *text = getenv("DDPCHECK_EMU_NCCL_VERSION");
    int version = text ? atoi(text) : 0;

    return version > 0 ? version : NCCL_VERSION_CODE;
}

PUBLIC(ncclGetVersion);
ncclResult_t ncclGetVersion(int *version)
{
    if (!version)
        return fail(ncclInvalidArgument, "GetVersion : version argument is NULL");
    *version = emulated_nccl_version();
    return ncclSuccess;
}

/* NCCL_DEBUG is read at each warning, so there is nothing to reset. A macro in nccl.h of 2.30. */
#undef ncclResetDebugInit
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void ncclResetDebugInit(void);
PUBLIC(ncclResetDebugInit);
void ncclResetDebugInit(void)
{
}

void ncclResetDebugInitInternal(void);
PUBLIC(ncclResetDebugInitInternal);
void ncclResetDebugInitInternal(void)
{
}
