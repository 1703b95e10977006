/* unwritten.c: tracks which bytes of an allocation have been written. */
#include "analyzer/hazard/unwritten.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/memory.h"
#include "lib/base/invariant.h"

enum { STRETCHES_MAX = 8 };

/* Sorted, apart from each other. */
struct written {
    uint32_t count;
    struct {
        uint64_t begin, end;
    } stretch[STRETCHES_MAX];
};

void unwritten_watch(struct allocation *allocation)
{
    allocation->written = calloc(1, sizeof *allocation->written);
}

void unwritten_forget(struct allocation *allocation)
{
    free(allocation->written);
    allocation->written = NULL;
}

static struct allocation *allocation_of_pointer(struct process *process, uint64_t pointer)
{
    const struct allocation *allocation = memory_find(process, pointer);
    return allocation && allocation->written
               ? &process->memory.allocation[allocation - process->memory.allocation]
               : NULL;
}

void unwritten_wrote_all(struct process *process, uint64_t pointer)
{
    struct allocation *allocation = allocation_of_pointer(process, pointer);
    if (allocation)
        unwritten_forget(allocation);
}

void unwritten_wrote_anything(struct process *process)
{
    process->memory.wrote_anything = process->now;
}

void unwritten_wrote(struct process *process, uint64_t begin, uint64_t end)
{
    struct allocation *allocation = allocation_of_pointer(process, begin);
    if (!allocation)
        return;
    struct written *written = allocation->written;
    uint32_t from = 0;
    while (from < written->count && written->stretch[from].end < begin)
        from++;
    uint32_t to = from;
    for (; to < written->count && written->stretch[to].begin <= end; to++) {
        begin = written->stretch[to].begin < begin ? written->stretch[to].begin : begin;
        end = written->stretch[to].end > end ? written->stretch[to].end : end;
    }
    if (begin <= allocation->base && end >= allocation->base + allocation->bytes) {
        unwritten_forget(allocation);
        return;
    }
    if (from == to && written->count == STRETCHES_MAX) {
        unwritten_forget(allocation);
        return;
    }
    memmove(&written->stretch[from + 1], &written->stretch[to],
            (written->count - to) * sizeof *written->stretch);
    written->count += 1 - (to - from);
    written->stretch[from].begin = begin;
    written->stretch[from].end = end;
    invariant(written->count <= STRETCHES_MAX, "written stretches have their room");
    invariant((!from || written->stretch[from - 1].end < begin) &&
                  (from + 1 == written->count || end < written->stretch[from + 1].begin),
              "written stretches are sorted and apart");
}

const struct allocation *unwritten_find(const struct process *process, uint64_t begin, uint64_t end)
{
    const struct allocation *allocation = memory_find(process, begin);
    if (!allocation || !allocation->written || end > allocation->base + allocation->bytes ||
        allocation->birth.position <= process->memory.wrote_anything)
        return NULL;
    for (uint32_t i = 0; i < allocation->written->count; i++)
        if (allocation->written->stretch[i].begin < end &&
            allocation->written->stretch[i].end > begin)
            return NULL;
    return allocation;
}
