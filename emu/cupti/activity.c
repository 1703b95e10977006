/* activity.c: CUPTI's activity interface: records of kernels, copies and memory sets, with the
 * calls that launched them, in the client's buffers. */
#include <cuda.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/activity.h"
#include "emu/cupti/callbacks.h"
#include "emu/cupti/version.h"

#if DDPCHECK_EMU_CUDART == 13
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#endif

#define EXTERNAL_KINDS CUPTI_EXTERNAL_CORRELATION_KIND_SIZE

enum { CALLS = 1024, EXTERNAL_DEPTH = 16 };

struct kernel_text {
    struct kernel_text *next;
    char text[];
};

static struct {
    pthread_mutex_t lock; /* adaptive: a collective ends on all streams at the same time */
    CUpti_BuffersCallbackRequestFunc requested;
    CUpti_BuffersCallbackCompleteFunc completed;
    _Atomic bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
    _Atomic bool call[2][CALLS]; /* of the driver, the runtime: recorded, whatever the kind is */
    uint8_t *buffer;             /* the one in hand; NULL: none */
    size_t bytes, used;
    size_t dropped;
    struct kernel_text *texts;
} activity = {.lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};

/* What the thread's calls are for, by kind. */
static _Thread_local struct {
    uint64_t id[EXTERNAL_DEPTH];
    unsigned depth;
} external[EXTERNAL_KINDS];

/* With the lock held. The client copies or reads, and calls nothing of CUPTI but for the records.
 */
static void complete_buffer(void)
{
    if (!activity.buffer)
        return;
    uint8_t *buffer = activity.buffer;
    activity.buffer = NULL;
    activity.completed(NULL, 0, buffer, activity.bytes, activity.used);
}

static size_t activity_bytes(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(kernel_record) + cupti_appended_bytes();
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(copy_record) + cupti_appended_bytes();
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4) + cupti_appended_bytes();
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    default:
        return 0;
    }
}

/* With the lock held. The record has the fields that are known, and may be longer. */
static void append_activity(const CUpti_Activity *record, size_t filled)
{
    size_t most = 0, bytes = activity_bytes(record->kind);

    if (activity.buffer && activity.bytes - activity.used < bytes)
        complete_buffer();
    if (!activity.buffer && activity.requested) {
        activity.requested(&activity.buffer, &activity.bytes, &most);
        activity.used = 0;
    }
    if (!activity.buffer || activity.bytes < bytes) {
        activity.dropped++;
        return;
    }
    memcpy(activity.buffer + activity.used, record, filled);
    memset(activity.buffer + activity.used + filled, 0xaa, bytes - filled);
    activity.used += bytes;
}

/* Names outlive their modules. With the lock held. */
static const char *keep_kernel_text(const char *text)
{
    struct kernel_text *kept = activity.texts;
    size_t bytes = strlen(text) + 1;

    while (kept && strcmp(kept->text, text) != 0)
        kept = kept->next;
    if (kept)
        return kept->text;
    kept = malloc(sizeof(*kept) + bytes);
    if (!kept)
        return NULL;
    memcpy(kept->text, text, bytes);
    kept->next = activity.texts;
    activity.texts = kept;
    return kept->text;
}

static bool records_launches(void)
{
    return activity.enabled[CUPTI_ACTIVITY_KIND_DRIVER] ||
           activity.call[0][CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel];
}

static void write_launch(uint32_t correlation)
{
    CUpti_ActivityAPI call = {.kind = CUPTI_ACTIVITY_KIND_DRIVER,
                              .cbid = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                              .correlationId = correlation};

    cupti_call_back(correlation);
    if (!records_launches())
        return;
    pthread_mutex_lock(&activity.lock);
    for (int kind = 0; kind < EXTERNAL_KINDS; kind++) {
        CUpti_ActivityExternalCorrelation cause = {
            .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
            .externalKind = (CUpti_ExternalCorrelationKind)kind,
            .correlationId = correlation};

        if (!external[kind].depth || !activity.enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION])
            continue;
        cause.externalId = external[kind].id[external[kind].depth - 1];
        append_activity((const CUpti_Activity *)&cause, sizeof(cause));
    }
    append_activity((const CUpti_Activity *)&call, sizeof(call));
    pthread_mutex_unlock(&activity.lock);
}

static void write_kernel(const struct emu_activity *ran)
{
    kernel_record record = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                            .start = ran->begin_ns,
                            .end = ran->end_ns,
                            .deviceId = (uint32_t)ran->device,
                            .gridX = (int32_t)ran->grid[0],
                            .gridY = (int32_t)ran->grid[1],
                            .gridZ = (int32_t)ran->grid[2],
                            .blockX = (int32_t)ran->block[0],
                            .blockY = (int32_t)ran->block[1],
                            .blockZ = (int32_t)ran->block[2],
                            .streamId = (uint32_t)ran->stream,
                            .correlationId = ran->correlation,
                            .name = keep_kernel_text(ran->name)};

    if (activity.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] ||
        activity.enabled[CUPTI_ACTIVITY_KIND_KERNEL])
        append_activity((const CUpti_Activity *)&record, sizeof(record));
}

static uint8_t copy_kind(int kind)
{
    static const uint8_t kinds[] = {
        CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
        CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD};

    return kind >= 0 && kind < 4 ? kinds[kind] : CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
}

static void write_copy(const struct emu_activity *ran)
{
    copy_record record = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                          .copyKind = copy_kind(ran->copy_kind),
                          .bytes = ran->bytes,
                          .start = ran->begin_ns,
                          .end = ran->end_ns,
                          .deviceId = (uint32_t)ran->device,
                          .streamId = (uint32_t)ran->stream,
                          .correlationId = ran->correlation};

    if (activity.enabled[CUPTI_ACTIVITY_KIND_MEMCPY])
        append_activity((const CUpti_Activity *)&record, sizeof(record));
}

static void write_fill(const struct emu_activity *ran)
{
    CUpti_ActivityMemset4 record = {.kind = CUPTI_ACTIVITY_KIND_MEMSET,
                                    .bytes = ran->bytes,
                                    .start = ran->begin_ns,
                                    .end = ran->end_ns,
                                    .deviceId = (uint32_t)ran->device,
                                    .streamId = (uint32_t)ran->stream,
                                    .correlationId = ran->correlation};

    if (activity.enabled[CUPTI_ACTIVITY_KIND_MEMSET])
        append_activity((const CUpti_Activity *)&record, sizeof(record));
}

static void write_ran(const struct emu_activity *ran)
{
    pthread_mutex_lock(&activity.lock);
    if (ran->kind == EMU_ACTIVITY_KERNEL)
        write_kernel(ran);
    else if (ran->kind == EMU_ACTIVITY_COPY)
        write_copy(ran);
    else
        write_fill(ran);
    pthread_mutex_unlock(&activity.lock);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed)
{
    if (!requested || !completed)
        return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&activity.lock);
    activity.requested = requested;
    activity.completed = completed;
    pthread_mutex_unlock(&activity.lock);
    return CUPTI_SUCCESS;
}

static CUptiResult enable_kind(CUpti_ActivityKind kind, bool on)
{
    static const struct emu_activity_listener listener = {write_launch, write_ran};

    if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
        return CUPTI_ERROR_INVALID_KIND;
    pthread_mutex_lock(&activity.lock);
    activity.enabled[kind] = on;
    pthread_mutex_unlock(&activity.lock);
    if (on)
        emu_activity_listen(&listener);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    return enable_kind(kind, true);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    return enable_kind(kind, false);
}

static CUptiResult enable_call(int of, CUpti_CallbackId id, uint8_t on)
{
    if (id >= CALLS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&activity.lock);
    activity.call[of][id] = on != 0;
    pthread_mutex_unlock(&activity.lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t on)
{
    return enable_call(0, id, on);
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t on)
{
    return enable_call(1, id, on);
}

/* Records are written when what they are of is over: all are complete. */
CUptiResult cuptiActivityFlushAll(uint32_t flags)
{
    (void)flags;
    pthread_mutex_lock(&activity.lock);
    if (activity.completed)
        complete_buffer();
    pthread_mutex_unlock(&activity.lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next;

    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    next = *record ? (uint8_t *)*record + activity_bytes((*record)->kind) : buffer;
    if (next >= buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)next;
    return activity_bytes((*record)->kind) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    if (!dropped)
        return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&activity.lock);
    *dropped = activity.dropped;
    activity.dropped = 0;
    pthread_mutex_unlock(&activity.lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= EXTERNAL_KINDS ||
        external[kind].depth == EXTERNAL_DEPTH)
        return CUPTI_ERROR_INVALID_PARAMETER;
    external[kind].id[external[kind].depth++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t *last)
{
    if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= EXTERNAL_KINDS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!external[kind].depth)
        return CUPTI_ERROR_QUEUE_EMPTY;
    external[kind].depth--;
    if (last)
        *last = external[kind].id[external[kind].depth];
    return CUPTI_SUCCESS;
}
