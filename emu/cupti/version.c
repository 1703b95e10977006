/* version.c: CUPTI's version, result texts and time stamps. */
#include <cupti.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/cupti/version.h"

enum {
    VERSION_12 = 28,
    VERSION_13 = 130001, /* of CUDA 12.9 and 13.0 */
    OWN = DDPCHECK_EMU_CUDART == 13 ? VERSION_13 : VERSION_12,
    APPENDED_BYTES = 64
};

/* DDPCHECK_EMU_CUPTI_VERSION=130500: a newer one, whose records have more fields at their end. */
static uint32_t emulated_version(void)
{
    const char *text = getenv("DDPCHECK_EMU_CUPTI_VERSION");
    int version = text ? atoi(text) : 0;

    return version > 0 ? (uint32_t)version : OWN;
}

size_t cupti_appended_bytes(void)
{
    return emulated_version() > OWN ? APPENDED_BYTES : 0;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
    if (!version)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *version = emulated_version();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    struct timespec now;

    if (!timestamp)
        return CUPTI_ERROR_INVALID_PARAMETER;
    clock_gettime(CLOCK_REALTIME, &now);
    *timestamp = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return CUPTI_SUCCESS;
}

static const struct {
    CUptiResult result;
    const char *name, *text;
} results[] = {
#define RESULT(name, text) {name, #name, text},
#include "emu/cupti/results.def"
#undef RESULT
};

static CUptiResult describe_result(CUptiResult result, const char **text, int name)
{
    if (!text)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].result == result) {
            *text = name ? results[i].name : results[i].text;
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    return describe_result(result, text, 1);
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **text)
{
    return describe_result(result, text, 0);
}

CUptiResult cuptiGetLastError(void)
{
    return CUPTI_SUCCESS; /* activities, which it is about, never fail here */
}
