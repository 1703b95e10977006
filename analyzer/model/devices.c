/* devices.c: keeps what is known of a process's devices. Most processes use one. */
#include "analyzer/model/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/engine.h"

struct device_state *device_find(const struct process *process, int device)
{
    bool is_known = device >= 0 && (uint32_t)device < process->devices.count;
    return is_known ? &process->devices.state[device] : NULL;
}

struct device_state *device_get(struct process *process, int device)
{
    struct device_state *known = device_find(process, device);
    if (known)
        return known;
    if (device < 0 || device >= PEER_DEVICES_MAX) {
        errno = EINVAL;
        return NULL;
    }
    uint32_t capacity = (uint32_t)device + 1;
    struct device_state *grown = realloc(process->devices.state, capacity * sizeof *grown);
    if (!grown)
        return NULL;
    memset(grown + process->devices.count, 0, (capacity - process->devices.count) * sizeof *grown);
    process->devices.state = grown;
    process->devices.count = capacity;
    return &grown[device];
}

int device_see(struct process *process, int device, uint64_t position)
{
    struct device_state *known = device_get(process, device);
    if (!known)
        return errno == ENOMEM ? ENGINE_FAILED : ENGINE_OK;
    known->seen = position;
    return ENGINE_OK;
}

void devices_free(struct process *process)
{
    free(process->devices.state);
}
