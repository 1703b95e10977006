/* accesses.c: finds which memory the work of a record reads and writes. */
#include "analyzer/hazard/accesses.h"

#include "analyzer/model/memory.h"
#include "lib/trace/names.h"

enum { COPY_HOST_TO_DEVICE = 1, COPY_DEVICE_TO_HOST = 2 };

static bool add_extent(struct use *use, uint32_t *count, uint64_t begin, uint64_t bytes,
                       bool writes)
{
    uint64_t end;
    if (!begin || !bytes || __builtin_add_overflow(begin, bytes, &end))
        return false;
    use[(*count)++] = (struct use){{begin, end, bytes, 0}, {.writes = writes, .sureness = SURE}};
    return true;
}

uint32_t uses_of_operation(const struct record *record, int nranks, struct use use[USES_MAX])
{
    struct op_extent extent;
    uint32_t count = 0;
    if (!op_extent_of(record, nranks, &extent))
        return 0;
    uint64_t send = record->op.sendbuff, recv = record->op.recvbuff;
    bool writes = add_extent(use, &count, recv, extent.recv_bytes, true);
    bool in_place = writes && send >= recv && extent.send_bytes <= extent.recv_bytes &&
                    send - recv <= extent.recv_bytes - extent.send_bytes;
    if (!in_place)
        add_extent(use, &count, send, extent.send_bytes, false);
    return count;
}

/* Rows of a 2D copy; false if they reach past all addresses. */
static bool add_rows(struct use *use, uint32_t *count, struct stretch rows, uint64_t height,
                     bool writes)
{
    uint64_t before; /* the last row */
    if (!height || rows.pitch <= rows.width)
        rows.pitch = height > 1 && rows.pitch ? rows.pitch : 0;
    if (!rows.begin || !rows.width ||
        (height && __builtin_mul_overflow(height - 1, rows.pitch, &before)))
        return false;
    before = height ? before : 0;
    if (__builtin_add_overflow(rows.begin, before, &rows.end) ||
        __builtin_add_overflow(rows.end, rows.width, &rows.end))
        return false;
    use[(*count)++] = (struct use){rows, {.writes = writes, .sureness = SURE}};
    return true;
}

static bool is_set(uint16_t api)
{
    return api == API_cudaMemset || api == API_cudaMemset2D || api == API_cudaMemset3D ||
           api == API_cudaMemsetAsync || api == API_cudaMemset2DAsync ||
           api == API_cudaMemset3DAsync || api == API_cuStreamWriteValue;
}

/* Pageable memory is no collective's. */
static bool is_pageable(const struct process *process, const struct record *record, uint64_t kind,
                        bool source)
{
    uint64_t address = source ? record->copy.src : record->copy.dst;
    return kind == (source ? COPY_HOST_TO_DEVICE : COPY_DEVICE_TO_HOST) &&
           !memory_find(process, address);
}

/* COPY and WAIT records have the same first fields but for the event of WAIT. */
static struct record as_copy(const struct record *record)
{
    struct record copy = *record;
    if (api_class_of(record->api) != CLASS_WAIT)
        return copy;
    copy.copy.dst = record->wait.dst;
    copy.copy.src = record->wait.src;
    copy.copy.bytes = record->wait.height ? record->wait.bytes / record->wait.height
                                          : record->wait.bytes;
    copy.copy.kind = record->wait.kind;
    copy.copy.dst_pitch = record->wait.dst_pitch;
    copy.copy.src_pitch = record->wait.src_pitch;
    copy.copy.height = record->wait.height;
    /* Without the pitches only the first byte of several rows is certain. */
    bool rows_unknown = (record->api == API_cudaMemcpy2D || record->api == API_cudaMemset2D ||
                         record->api == API_cudaMemcpy3D || record->api == API_cudaMemset3D) &&
                        !record->wait.height;
    if (rows_unknown && copy.copy.bytes)
        copy.copy.bytes = 1;
    return copy;
}

uint32_t uses_of_copy(const struct process *process, const struct record *record,
                      struct use use[USES_MAX])
{
    struct record copy = as_copy(record);
    uint64_t kind = copy.copy.kind, height = copy.copy.height;
    uint32_t count = 0;
    bool is_2d = record->api == API_cudaMemcpy2DAsync || record->api == API_cudaMemset2DAsync;
    if (record->api == API_cudaFree || record->api == API_cudaFreeHost || (is_2d && !height))
        return 0;
    if (!is_pageable(process, &copy, kind, false) &&
        add_rows(use, &count,
                 (struct stretch){copy.copy.dst, 0, copy.copy.bytes, copy.copy.dst_pitch}, height,
                 true))
        use[0].access.staged = record->flags & RECORD_FLAG_PAGEABLE;
    if (!is_set(record->api) && !is_pageable(process, &copy, kind, true))
        add_rows(use, &count,
                 (struct stretch){copy.copy.src, 0, copy.copy.bytes, copy.copy.src_pitch}, height,
                 false);
    return count;
}

uint32_t uses_of_kernel(const struct record *record, struct use use[USES_MAX])
{
    uint32_t pointers = record->launch.count < USES_MAX ? record->launch.count : USES_MAX,
             count = 0;
    unsigned written = record->launch.written & ((1u << pointers) - 1);
    bool all_reported = record->launch.count < USES_MAX && !record->launch.inferred &&
                        !record->launch.known && !(record->flags & RECORD_FLAG_MORE);
    for (uint32_t i = 0; i < pointers; i++) {
        uint64_t pointer = record->launch.pointer[i];
        if (!pointer || pointer == UINT64_MAX)
            continue;
        bool writes = written >> i & 1;
        bool inferred = record->launch.inferred >> i & 1;
        uint64_t extent = inferred && record->launch.extent ? record->launch.extent : 1;
        use[count++] = (struct use){
            {pointer, pointer + extent, extent, 0},
            {.writes = writes,
             .sole = writes && all_reported && !(written & (written - 1)),
             .sureness = inferred ? GUESSED : ASSUMED},
        };
    }
    return count;
}

bool stretch_meets(const struct stretch *stretch, uint64_t begin, uint64_t end)
{
    if (end <= stretch->begin || begin >= stretch->end)
        return false;
    if (stretch->pitch <= stretch->width)
        return true;
    uint64_t first_end = stretch->begin + stretch->width, row = 0;
    if (begin >= first_end)
        row = (begin - first_end) / stretch->pitch + 1;
    uint64_t offset;
    return !__builtin_mul_overflow(row, stretch->pitch, &offset) && offset < end - stretch->begin &&
           offset < stretch->end - stretch->begin;
}
