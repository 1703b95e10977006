/* host_call.c: runs a host function on a stream. */
#include "emu/core/host_call.h"

#include <driver_types.h>
#include <stdlib.h>

#include "emu/core.h"
#include "emu/core/process.h"

static int run_host_call(void *arg)
{
    const struct emu_host_call *call = arg;

    emu_process_callback(true);
    if (call->function)
        call->function(call->data);
    else
        call->callback(call->stream, 0, call->data);
    emu_process_callback(false);
    return 0;
}

int emu_host_call(struct emu_stream *stream, const struct emu_host_call *model, const char *name)
{
    struct emu_host_call *call = malloc(sizeof(*call));
    int error;

    if (!call)
        return cudaErrorMemoryAllocation;
    *call = *model;
    error = emu_stream_push(stream, name, run_host_call, call, free);
    if (error)
        free(call);
    return error;
}
