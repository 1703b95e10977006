/* memop.c: stream memory operations: a stream writes a word, or waits until a word has a value. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/core/memory.h"
#include "emu/core/stream.h"
#include "emu/driver/call.h"

struct memop {
    struct emu_device *device;
    uintptr_t address;
    uint64_t value;
    unsigned bytes;     /* 4 or 8 */
    unsigned condition; /* CUstreamWaitValue_flags */
    bool wait;
};

static uint64_t load_value(const struct memop *operation)
{
    return operation->bytes == 8
               ? __atomic_load_n((uint64_t *)operation->address, __ATOMIC_ACQUIRE)
               : __atomic_load_n((uint32_t *)operation->address, __ATOMIC_ACQUIRE);
}

static bool value_holds(const struct memop *operation)
{
    uint64_t word = load_value(operation), mask = operation->bytes == 8 ? UINT64_MAX : UINT32_MAX;

    switch (operation->condition) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic: the difference, as a signed number, is not negative */
        return !((word - operation->value) &
                 (operation->bytes == 8 ? UINT64_C(1) << 63 : UINT64_C(1) << 31));
    case CU_STREAM_WAIT_VALUE_EQ:
        return word == operation->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (word & operation->value) != 0;
    default: /* CU_STREAM_WAIT_VALUE_NOR */
        return (~(word | operation->value) & mask) != 0;
    }
}

/* Anyone may write the word, so it is polled: gently, for a wait may be long. */
static void wait_for_value(const struct memop *operation)
{
    struct timespec pause = {0, 1000};

    while (!value_holds(operation) && !atomic_load(&operation->device->error)) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 1000000)
            pause.tv_nsec *= 2;
    }
}

static int run_memop(void *arg)
{
    const struct memop *operation = arg;
    struct emu_range *range;
    int error = emu_memory_hold(operation->device->index, (void *)operation->address,
                                operation->bytes, false, &range);

    if (error)
        return error;
    if (operation->wait)
        wait_for_value(operation);
    else if (operation->bytes == 8)
        __atomic_store_n((uint64_t *)operation->address, operation->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)operation->address, (uint32_t)operation->value,
                         __ATOMIC_RELEASE);
    emu_memory_release(range);
    return 0;
}

/* "cuStreamWriteValue doesn't support managed memory" (CUDA Driver API, Stream Memory Operations).
 */
static bool is_managed(uintptr_t address)
{
    struct emu_range range;

    return emu_memory_look_up((const void *)address, &range, NULL) &&
           range.kind == EMU_MEMORY_MANAGED;
}

static int push_memop(CUstream handle, struct memop model)
{
    struct memop *operation;
    struct emu_stream *stream;
    int error;

    if (!driver_stream(handle, &stream, &error))
        return error;
    model.device = stream->device;
    if (model.address % model.bytes || is_managed(model.address) ||
        !emu_memory_reachable(model.device->index, (void *)model.address, model.bytes))
        return CUDA_ERROR_INVALID_VALUE;
    operation = malloc(sizeof(*operation));
    if (!operation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *operation = model;
    error = emu_stream_push(stream, model.wait ? "cuStreamWaitValue" : "cuStreamWriteValue",
                            run_memop, operation, free);
    if (error)
        free(operation);
    return error;
}

/* DDPCHECK_EMU_STREAM_WRITES=0: as a driver that has none. */
static bool has_writes(void)
{
    enum { UNKNOWN, YES, NO };
    static atomic_int answer;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);

    if (known == UNKNOWN) {
        const char *text = getenv("DDPCHECK_EMU_STREAM_WRITES");

        known = text && !strcmp(text, "0") ? NO : YES;
        atomic_store(&answer, known);
    }
    return known == YES;
}

static int write_value(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags,
                       unsigned bytes)
{
    if (!has_writes())
        return CUDA_ERROR_NOT_SUPPORTED;
    if (flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
        return CUDA_ERROR_INVALID_VALUE;
    return push_memop(stream, (struct memop){.address = address, .value = value, .bytes = bytes});
}

static int wait_value(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags,
                      unsigned bytes)
{
    unsigned condition = flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;

    if (condition > CU_STREAM_WAIT_VALUE_NOR)
        return CUDA_ERROR_INVALID_VALUE;
    return push_memop(stream, (struct memop){.address = address,
                                             .value = value,
                                             .bytes = bytes,
                                             .condition = condition,
                                             .wait = true});
}

#define VALUE_CALL(name, type, function)                                                \
    STREAM_CALL(cuStream##name##_v2, cuStream##name##_v2_ptsz,                          \
                (CUstream stream, CUdeviceptr address, type value, unsigned int flags), \
                (stream, address, value, flags))                                        \
    {                                                                                   \
        return function(stream, address, value, flags, sizeof(type));                   \
    }                                                                                   \
    DRIVER_ALIAS("cuStream" #name, "cuStream" #name "_v2");                             \
    DRIVER_ALIAS("cuStream" #name "_ptsz", "cuStream" #name "_v2_ptsz");

VALUE_CALL(WriteValue32, cuuint32_t, write_value)
VALUE_CALL(WriteValue64, cuuint64_t, write_value)
VALUE_CALL(WaitValue32, cuuint32_t, wait_value)
VALUE_CALL(WaitValue64, cuuint64_t, wait_value)

static int push_one(CUstream stream, const CUstreamBatchMemOpParams *p)
{
    switch (p->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return wait_value(stream, p->waitValue.address, p->waitValue.value, p->waitValue.flags, 4);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return wait_value(stream, p->waitValue.address, p->waitValue.value64, p->waitValue.flags,
                          8);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return write_value(stream, p->writeValue.address, p->writeValue.value, p->writeValue.flags,
                           4);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return write_value(stream, p->writeValue.address, p->writeValue.value64,
                           p->writeValue.flags, 8);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    case CU_STREAM_MEM_OP_BARRIER:
        return 0; /* every operation is ordered already */
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

STREAM_CALL(cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz,
            (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations,
             unsigned int flags),
            (stream, count, operations, flags))
{
    int error = !operations || flags ? CUDA_ERROR_INVALID_VALUE : 0;

    for (unsigned i = 0; i < count && !error; i++)
        error = push_one(stream, &operations[i]);
    return error;
}
