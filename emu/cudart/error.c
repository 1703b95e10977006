/* error.c: names, texts and the last error of the runtime. */
#include <stddef.h>

#include "emu/core/attributes.h"
#include "emu/core/process.h"
#include "emu/cudart/call.h"

static _Thread_local cudaError_t last_error;

/* Within a major version a runtime may be newer than the driver ("CUDA Compatibility"). */
bool call_is_driver_too_old(void)
{
    return DDPCHECK_EMU_CUDART > emu_driver_version() / 1000;
}

cudaError_t call_enter(bool sticky)
{
    int error = emu_process_check();
    struct emu_device *device;

    if (!error && sticky && call_is_driver_too_old())
        error = cudaErrorInsufficientDriver;
    if (error || !sticky)
        return error;
    device = emu_device_here();
    return device ? atomic_load_explicit(&device->error, memory_order_acquire)
                  : (int)cudaErrorNoDevice;
}

cudaError_t call_leave(int error)
{
    if (error)
        last_error = error;
    return error;
}

bool call_stream(cudaStream_t handle, struct emu_stream **stream, int *error)
{
    *stream = emu_stream_find(handle);
    *error = *stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
    return *stream != NULL;
}

/* A sticky error shows even if no call has met it yet. */
static int error_now(void)
{
    if (last_error || emu_process_check())
        return last_error;
    return emu_device_error(emu_device_current());
}

cudaError_t cudaGetLastError(void)
{
    int error = error_now();

    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return error_now();
}

/* Names are the header's; texts are ours, in the words that people search for. */
static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
#define ERROR(name, text) {name, #name, text},
#include "emu/cudart/errors.def"
#undef ERROR
};

static size_t find_error_row(cudaError_t error)
{
    size_t i = 0;

    while (i < sizeof(errors) / sizeof(errors[0]) && errors[i].error != error)
        i++;
    return i;
}

const char *cudaGetErrorName(cudaError_t error)
{
    size_t i = find_error_row(error);

    return i < sizeof(errors) / sizeof(errors[0]) ? errors[i].name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    size_t i = find_error_row(error);

    return i < sizeof(errors) / sizeof(errors[0]) ? errors[i].text : "unrecognized error code";
}
