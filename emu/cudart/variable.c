/* variable.c: registers device variables and copies to and from them. */
#include "emu/cudart/variable.h"

#include <pthread.h>
#include <string.h>

#include "emu/core/copy.h"
#include "emu/core/handles.h"
#include "emu/core/memory.h"
#include "emu/cudart/call.h"

struct variable {
    struct variable *next;
    const void *module, *host;
    size_t bytes;
    bool managed;
    void *memory[EMU_MAX_DEVICES]; /* [0] is everyone's if managed */
};

static struct {
    pthread_mutex_t lock;
    struct variable *first;
} variables = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct variable *make_variable(const void *module, const void *host, size_t bytes)
{
    struct variable *variable = calloc(1, sizeof(*variable));

    if (!variable)
        return NULL;
    variable->module = module;
    variable->host = host;
    variable->bytes = bytes;
    if (emu_handles_add_with(host, HANDLE_VARIABLE, variable)) {
        free(variable);
        return NULL;
    }
    pthread_mutex_lock(&variables.lock);
    variable->next = variables.first;
    variables.first = variable;
    pthread_mutex_unlock(&variables.lock);
    return variable;
}

int variable_register(const void *module, const void *host, const char *name, size_t bytes)
{
    (void)name;
    return make_variable(module, host, bytes) ? 0 : cudaErrorMemoryAllocation;
}

int variable_register_managed(const void *module, void **host, const char *name, size_t bytes)
{
    struct variable *variable = make_variable(module, host, bytes);

    (void)name;
    if (!variable)
        return cudaErrorMemoryAllocation;
    variable->managed = true;
    if (emu_memory_allocate_host(0, bytes, EMU_MEMORY_MANAGED, cudaMemAttachGlobal,
                                 &variable->memory[0]))
        return cudaErrorMemoryAllocation;
    *host = variable->memory[0];
    return 0;
}

void variable_unregister(const void *module)
{
    struct variable **link = &variables.first;

    pthread_mutex_lock(&variables.lock);
    while (*link) {
        struct variable *variable = *link;

        if (variable->module != module) {
            link = &variable->next;
            continue;
        }
        *link = variable->next;
        emu_handles_remove(variable->host, HANDLE_VARIABLE);
        free(variable); /* its memory stays: work that uses it may be under way */
    }
    pthread_mutex_unlock(&variables.lock);
}

int variable_find(const void *host, void **pointer, size_t *bytes)
{
    struct variable *variable = emu_handles_get(host, HANDLE_VARIABLE);
    struct emu_range range;
    int device = emu_device_current(), error = 0;
    void **memory;

    if (!variable)
        return cudaErrorInvalidSymbol;
    memory = &variable->memory[variable->managed ? 0 : device];
    pthread_mutex_lock(&variables.lock);
    if (!*memory || !emu_memory_look_up(*memory, &range, NULL)) /* a device reset takes it away */
        error = emu_memory_allocate(device, variable->bytes, NULL, memory);
    *pointer = *memory;
    pthread_mutex_unlock(&variables.lock);
    *bytes = variable->bytes;
    return error;
}

CALL(cudaGetSymbolAddress, (void **pointer, const void *symbol), (pointer, symbol))
{
    size_t bytes;

    return pointer ? variable_find(symbol, pointer, &bytes) : cudaErrorInvalidValue;
}

CALL(cudaGetSymbolSize, (size_t * bytes, const void *symbol), (bytes, symbol))
{
    void *pointer;

    return bytes ? variable_find(symbol, &pointer, bytes) : cudaErrorInvalidValue;
}

/* Copies to (or from) a part of a variable. */
static int copy_variable(const void *symbol, size_t offset, void *to, const void *from,
                         size_t bytes, enum cudaMemcpyKind kind, cudaStream_t handle, bool async,
                         const char *name)
{
    struct emu_stream *stream;
    struct emu_copy plain;
    void *memory;
    size_t size;
    int error = variable_find(symbol, &memory, &size);

    if (error || !call_stream(handle, &stream, &error))
        return error;
    if (offset > size || bytes > size - offset)
        return cudaErrorInvalidValue;
    memory = (char *)memory + offset;
    if (!to)
        to = memory;
    if (!from)
        from = memory;
    plain = emu_copy_plain(to, from, bytes, kind);
    return emu_copy(stream, &plain, async, name);
}

DEFAULT_CALL(cudaMemcpyToSymbol,
             (const void *symbol, const void *from, size_t bytes, size_t offset,
              enum cudaMemcpyKind kind),
             (symbol, from, bytes, offset, kind))
{
    return from ? copy_variable(symbol, offset, NULL, from, bytes, kind, stream, false,
                                "cudaMemcpyToSymbol")
                : cudaErrorInvalidValue;
}

DEFAULT_CALL(cudaMemcpyFromSymbol,
             (void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind),
             (to, symbol, bytes, offset, kind))
{
    return to ? copy_variable(symbol, offset, to, NULL, bytes, kind, stream, false,
                              "cudaMemcpyFromSymbol")
              : cudaErrorInvalidValue;
}

STREAM_CALL(cudaMemcpyToSymbolAsync,
            (const void *symbol, const void *from, size_t bytes, size_t offset,
             enum cudaMemcpyKind kind, cudaStream_t stream),
            (symbol, from, bytes, offset, kind, stream))
{
    return from ? copy_variable(symbol, offset, NULL, from, bytes, kind, stream, true,
                                "cudaMemcpyToSymbolAsync")
                : cudaErrorInvalidValue;
}

STREAM_CALL(cudaMemcpyFromSymbolAsync,
            (void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
             cudaStream_t stream),
            (to, symbol, bytes, offset, kind, stream))
{
    return to ? copy_variable(symbol, offset, to, NULL, bytes, kind, stream, true,
                              "cudaMemcpyFromSymbolAsync")
              : cudaErrorInvalidValue;
}
