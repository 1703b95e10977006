/* memory.c: tracks the allocations of a process. */
#include "analyzer/model/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/devices.h"
#include "analyzer/model/freed.h"
#include "analyzer/model/process.h"
#include "analyzer/hazard/unwritten.h"
#include "lib/base/invariant.h"

enum { ALLOCATIONS_MAX = 1 << 20, PEER_ACCESS_ALREADY_ENABLED = 704 };

/* Index of the first allocation whose end is above the address. */
static uint32_t first_above(const struct process *process, uint64_t pointer)
{
    uint32_t low = 0, high = process->memory.allocations;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct allocation *allocation = &process->memory.allocation[middle];
        if (allocation->base + allocation->bytes <= pointer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct allocation *memory_find(const struct process *process, uint64_t pointer)
{
    uint32_t i = first_above(process, pointer);
    if (!pointer || i == process->memory.allocations ||
        process->memory.allocation[i].base > pointer)
        return NULL;
    return &process->memory.allocation[i];
}

static void remove_range(struct process *process, uint32_t from, uint32_t to)
{
    if (from == to) /* there may be no allocations at all */
        return;
    invariant(from < to && to <= process->memory.allocations,
              "only allocations that are known are removed");
    for (uint32_t i = from; i < to; i++)
        unwritten_forget(&process->memory.allocation[i]);
    memmove(&process->memory.allocation[from], &process->memory.allocation[to],
            (process->memory.allocations - to) * sizeof *process->memory.allocation);
    process->memory.allocations -= to - from;
}

/* No two allocations around number `i` overlap. */
static bool are_disjoint(const struct process *process, uint32_t i)
{
    uint32_t first = i > 2 ? i - 2 : 0;
    for (uint32_t k = first; k + 1 < process->memory.allocations && k <= i + 1; k++)
        if (process->memory.allocation[k].base + process->memory.allocation[k].bytes >
            process->memory.allocation[k + 1].base)
            return false;
    return true;
}

/* Adds it in the place of whatever it overlaps: that was freed without our seeing it. Takes over
 * what it holds. */
static int memory_add(struct process *process, struct allocation *allocation)
{
    uint64_t end;
    if (!allocation->base || !allocation->bytes ||
        __builtin_add_overflow(allocation->base, allocation->bytes, &end))
        return ENGINE_SKIPPED;
    freed_forget(process, allocation->base, end);
    uint32_t from = first_above(process, allocation->base), to = from;
    while (to < process->memory.allocations && process->memory.allocation[to].base < end)
        to++;
    allocation->took_over = to > from;
    if (to > from)
        remove_range(process, from, to);
    if (process->memory.allocations >= ALLOCATIONS_MAX)
        return ENGINE_OK;
    struct allocation *grown = array_room(process->memory.allocation, sizeof *grown,
                                          process->memory.allocations,
                                          &process->memory.allocation_capacity, 64);
    if (!grown)
        return ENGINE_FAILED;
    process->memory.allocation = grown;
    memmove(&process->memory.allocation[from + 1], &process->memory.allocation[from],
            (process->memory.allocations++ - from) * sizeof *process->memory.allocation);
    process->memory.allocation[from] = *allocation;
    invariant(are_disjoint(process, from), "no two allocations of a process overlap");
    return ENGINE_OK;
}

int memory_notice(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    struct allocation allocation = {
        .base = record->buffer.base,
        .bytes = record->buffer.bytes,
        .device = record->buffer.device,
        .type = record->buffer.type,
    };
    if (memory_is_pageable(&allocation)) { /* how far it goes is not known */
        if (freed_find(process, record->buffer.pointer, record->buffer.pointer + 1))
            return ENGINE_OK; /* CUDA no longer knows it */
        allocation.base = record->buffer.pointer;
        allocation.bytes = 1;
    } else if (allocation.type == MEMORY_UNKNOWN) {
        return ENGINE_OK;
    }
    const struct allocation *known = memory_find(process, allocation.base);
    if (known && known->base == allocation.base && known->bytes >= allocation.bytes) {
        if (known->is_mapping) /* the device that is current in cuMemMap need not be its own */
            process->memory.allocation[known - process->memory.allocation].device =
                allocation.device;
        return ENGINE_OK; /* its allocation was seen, which reported more */
    }
    return memory_add(process, &allocation);
}

int memory_release(struct process *process, uint64_t pointer, const struct site *site, uint16_t api)
{
    const struct allocation *allocation = memory_find(process, pointer);
    if (!allocation || allocation->base != pointer)
        return ENGINE_OK;
    struct freed freed = {pointer, allocation->bytes, *site, api};
    bool is_sure = !allocation->took_over && !memory_is_pageable(allocation);
    uint32_t i = (uint32_t)(allocation - process->memory.allocation);
    remove_range(process, i, i + 1);
    return is_sure && freed_add(process, &freed) ? ENGINE_FAILED : ENGINE_OK;
}

void memory_free(struct process *process)
{
    for (uint32_t i = 0; i < process->memory.allocations; i++)
        unwritten_forget(&process->memory.allocation[i]);
    free(process->memory.allocation);
    free(process->memory.freed);
}

uint64_t memory_mapped_end(const struct process *process, const struct allocation *allocation,
                           uint64_t wanted)
{
    uint64_t end = allocation->base + allocation->bytes;
    const struct allocation *last = process->memory.allocation + process->memory.allocations;
    for (const struct allocation *next = allocation + 1;
         end < wanted && next < last && next->base == end; next++)
        end += next->bytes;
    return end;
}

static int memory_unmap(struct process *process, uint64_t base, uint64_t bytes)
{
    uint32_t from = first_above(process, base), to = from;
    while (to < process->memory.allocations && process->memory.allocation[to].base - base < bytes)
        to++;
    remove_range(process, from, to);
    return ENGINE_OK;
}

/* Before a process has a communicator it is recorded only from its first call of NCCL on, which may
 * come before its allocations on some ranks or threads and behind them on others. */
static bool has_communicator(const struct process *process)
{
    const struct member *member = process->members;
    while (member && !member->exists)
        member = member->process_next;
    return member != NULL;
}

/* Device memory that was made just now. */
static int memory_born(const struct event *event, struct allocation *allocation)
{
    const struct work *work = &event->thread->work;
    struct process *process = event->process;
    allocation->birth.position = process->now;
    if (allocation->stream_ordered && work->stream)
        allocation->birth = work->place;
    allocation->site = event->site;
    if (has_communicator(process))
        unwritten_watch(allocation);
    int result = memory_add(process, allocation);
    if (result != ENGINE_OK)
        unwritten_forget(allocation);
    return result;
}

int memory_feed(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    struct allocation allocation = {
        .base = record->memory.pointer,
        .bytes = record->memory.bytes,
        .device = record->device,
        .type = MEMORY_DEVICE,
    };
    if (record->result != 0 || record->flags & RECORD_FLAG_CAPTURE)
        return ENGINE_OK;
    switch (record->api) {
    case API_cudaMallocHost:
    case API_cudaHostAlloc:
    case API_cudaHostRegister:
        allocation.device = RECORD_NO_DEVICE;
        allocation.type = MEMORY_HOST_PINNED;
        return memory_add(process, &allocation);
    case API_cudaMallocManaged:
        allocation.type = MEMORY_MANAGED;
        return memory_add(process, &allocation);
    case API_cudaMallocAsync:
    case API_cudaMallocFromPoolAsync:
        allocation.stream_ordered = true;
        /* fall through */
    case API_ncclMemAlloc:
        allocation.type = MEMORY_DEVICE_MAPPED;
        return memory_born(event, &allocation);
    case API_cudaMalloc:
    case API_cudaMallocPitch:
        return memory_born(event, &allocation);
    case API_cuMemMap:
        allocation.type = MEMORY_DEVICE_MAPPED;
        allocation.is_mapping = true;
        return memory_add(process, &allocation);
    case API_cuMemUnmap:
        return memory_unmap(process, record->memory.pointer, record->memory.bytes);
    case API_cudaIpcGetMemHandle: /* others can write to it */
        unwritten_wrote_all(process, record->memory.pointer);
        return ENGINE_OK;
    case API_cudaIpcOpenMemHandle: /* its extent and true device are not known */
    case API_cudaFreeAsync:
    case API_cudaHostUnregister:
    case API_cudaIpcCloseMemHandle:
    case API_ncclMemFree:
        return memory_release(process, record->memory.pointer, &event->site, record->api);
    default:
        return ENGINE_OK;
    }
}

int memory_peer_access(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    int64_t to = record->device_access.peer;
    if (to < 0 || to >= PEER_DEVICES_MAX)
        return ENGINE_SKIPPED;
    struct device_state *from = device_get(process, record->device);
    if (!from)
        return errno == ENOMEM ? ENGINE_FAILED : ENGINE_SKIPPED;
    if (record->api == API_cudaDeviceDisablePeerAccess && record->result == 0)
        from->may_access[to / 64] &= ~(UINT64_C(1) << to % 64);
    else if (record->api == API_cudaDeviceEnablePeerAccess &&
             (record->result == 0 || record->result == PEER_ACCESS_ALREADY_ENABLED))
        from->may_access[to / 64] |= UINT64_C(1) << to % 64;
    return ENGINE_OK;
}

bool memory_can_access(const struct process *process, int from, int to)
{
    if (from == to || from < 0 || to < 0)
        return true;
    const struct device_state *device = device_find(process, from);
    return device && to < PEER_DEVICES_MAX && (device->may_access[to / 64] >> to % 64 & 1);
}
