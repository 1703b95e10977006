/* init.c: cuInit, and the names and texts of the driver's errors. */
#include <stdio.h>

#include "emu/core/attributes.h"
#include "emu/core/process.h"
#include "emu/driver/call.h"

static atomic_bool initialised;

int driver_enter(bool context)
{
    int error = emu_process_check();

    if (error)
        return error;
    if (!atomic_load(&initialised) &&
        !emu_process_uses()) /* the runtime initialises the driver, too */
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context)
        return 0;
    return emu_device_chosen() ? emu_device_error(emu_device_current())
                               : (int)CUDA_ERROR_INVALID_CONTEXT;
}

bool driver_stream(CUstream handle, struct emu_stream **stream, int *error)
{
    *stream = emu_stream_find(handle);
    *error = *stream ? 0 : CUDA_ERROR_INVALID_HANDLE;
    return *stream != NULL;
}

CUresult cuInit(unsigned int flags)
{
    int error = emu_process_check();

    if (error || flags)
        return error ? error : (int)CUDA_ERROR_INVALID_VALUE;
    if (!emu_device_count())
        return CUDA_ERROR_NO_DEVICE;
    atomic_store(&initialised, true);
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = emu_driver_version();
    return CUDA_SUCCESS;
}

static const struct {
    CUresult error;
    const char *name, *text;
} errors[] = {
#define ERROR(name, text) {name, #name, text},
#include "emu/driver/errors.def"
#undef ERROR
};

static int find_error(CUresult error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].error == error)
            return (int)i;
    return -1;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    int i = find_error(error);

    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = i < 0 ? NULL : errors[i].name;
    return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    int i = find_error(error);

    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = i < 0 ? NULL : errors[i].text;
    return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
