/* decode.c: reads CUPTI's records. */
#include "interpose/timing/decode.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include <cuda.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>

static uint64_t kernel_threads(const CUpti_ActivityKernel4 *kernel)
{
    uint64_t blocks = (uint64_t)kernel->gridX * (uint64_t)kernel->gridY * (uint64_t)kernel->gridZ;
    return blocks * (uint64_t)kernel->blockX * (uint64_t)kernel->blockY * (uint64_t)kernel->blockZ;
}

static void decode_kernel(const void *record, struct timed_work *work)
{
    const CUpti_ActivityKernel4 *kernel = record;
    *work = (struct timed_work){.what = TIMED_KERNEL,
                                .begin_ns = kernel->start,
                                .end_ns = kernel->end,
                                .amount = kernel_threads(kernel),
                                .correlation = kernel->correlationId,
                                .device = (int16_t)kernel->deviceId,
                                .name = kernel->name ? kernel->name : "a kernel without a name"};
}

static const char *copied_name(unsigned kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return "copy to the device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return "copy to the host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        return "copy on the device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "copy to another device";
    default:
        return "copy";
    }
}

static void decode_copy(const void *record, struct timed_work *work)
{
    const CUpti_ActivityMemcpy *copy = record;
    *work = (struct timed_work){.what = TIMED_COPY,
                                .begin_ns = copy->start,
                                .end_ns = copy->end,
                                .amount = copy->bytes,
                                .correlation = copy->correlationId,
                                .device = (int16_t)copy->deviceId,
                                .name = copied_name(copy->copyKind)};
}

static void decode_peer_copy(const void *record, struct timed_work *work)
{
    const CUpti_ActivityMemcpyPtoP4 *copy = record;
    *work = (struct timed_work){.what = TIMED_COPY,
                                .begin_ns = copy->start,
                                .end_ns = copy->end,
                                .amount = copy->bytes,
                                .correlation = copy->correlationId,
                                .device = (int16_t)copy->deviceId,
                                .name = copied_name(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP)};
}

static void decode_memset(const void *record, struct timed_work *work)
{
    const CUpti_ActivityMemset *set = record;
    *work = (struct timed_work){.what = TIMED_COPY,
                                .begin_ns = set->start,
                                .end_ns = set->end,
                                .amount = set->bytes,
                                .correlation = set->correlationId,
                                .device = (int16_t)set->deviceId,
                                .name = "memory set"};
}

enum timed_record timing_decode(const void *record, size_t bytes, struct timed_work *work)
{
    static const struct {
        CUpti_ActivityKind kind;
        size_t bytes;
        void (*decode)(const void *record, struct timed_work *work);
    } kinds[] = {
        {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel4), decode_kernel},
        {CUPTI_ACTIVITY_KIND_KERNEL, sizeof(CUpti_ActivityKernel4), decode_kernel},
        {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy), decode_copy},
        {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4), decode_peer_copy},
        {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset), decode_memset},
    };
    const CUpti_Activity *activity = record;
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && activity->kind != kinds[i].kind)
        i++;
    if (i == sizeof kinds / sizeof *kinds)
        return RECORD_OF_OTHER;
    if (bytes < kinds[i].bytes)
        return RECORD_TOO_SHORT;
    kinds[i].decode(record, work);
    return work->begin_ns && work->end_ns >= work->begin_ns ? RECORD_OF_WORK : RECORD_OF_OTHER;
}

bool timing_is_nccl(const char *name)
{
    if (!strncmp(name, "_Z", 2))
        for (name += 2; isdigit((unsigned char)*name); name++)
            ;
    return !strncmp(name, "ncclDevKernel", 13) || !strncmp(name, "ncclKernel", 10);
}
