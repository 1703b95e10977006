/* issued.c: see issued.h. */
#include "analyzer/model/issued.h"

#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/invariant.h"

enum { DEVICES_MOST = 1024 };

static int issued_grow(struct process *process, uint32_t devices)
{
    struct issued *grown = realloc(process->issued.on_device, devices * sizeof *grown);
    if (!grown)
        return -1;
    for (uint32_t i = process->issued.devices; i < devices; i++)
        grown[i] = (struct issued){0};
    process->issued.on_device = grown;
    process->issued.devices = devices;
    return 0;
}

int issued_add(struct process *process, int device, const struct record *left)
{
    if (!(left->leave.kernels || left->leave.threads) || device < 0 || device >= DEVICES_MOST)
        return 0;
    uint32_t index = (uint32_t)device;
    if (index >= process->issued.devices && issued_grow(process, index + 1))
        return -1;
    invariant(index < process->issued.devices, "launches are counted on a device that is known");
    process->issued.on_device[index].kernels += left->leave.kernels;
    process->issued.on_device[index].threads += left->leave.threads;
    return 0;
}

struct issued issued_on(const struct process *process, int device)
{
    bool is_known = device >= 0 && (uint32_t)device < process->issued.devices;
    return is_known ? process->issued.on_device[device] : (struct issued){0};
}

static uint64_t bit_of(uint64_t value)
{
    return UINT64_C(1) << (hash_word(0, value) % 64);
}

void issued_note_way(struct launches *launches, const struct pending *pending)
{
    uint64_t stack = bit_of(pending->site.stack);
    uint64_t call = bit_of(signature_hash(&pending->signature));
    launches->is_moved = (launches->calls & call) && !(launches->stacks & stack);
    launches->stacks |= stack;
    launches->calls |= call;
}
