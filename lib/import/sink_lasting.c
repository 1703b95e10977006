/* sink_lasting.c: operations of which it is known how long they took on the GPU. That they began
 * and ended is reported when the process's time is there, as a host is ahead of its GPU. */
#include <stdlib.h>
#include <string.h>

#include "lib/import/sink.h"

/* Kept by time; mostly the new one is the last. */
static int expect(struct sink_process *process, const struct sink_change *change)
{
    struct sink_changes *to_come = &process->to_come;
    if (to_come->first == to_come->end)
        to_come->first = to_come->end = 0;
    if (to_come->end == to_come->capacity) {
        uint32_t capacity = to_come->capacity ? 2 * to_come->capacity : 64;
        struct sink_change *grown = realloc(to_come->change, capacity * sizeof *grown);
        if (!grown)
            return -1;
        to_come->change = grown;
        to_come->capacity = capacity;
    }
    uint32_t at = to_come->end++;
    for (; at > to_come->first && to_come->change[at - 1].time_ns > change->time_ns; at--)
        to_come->change[at] = to_come->change[at - 1];
    to_come->change[at] = *change;
    return 0;
}

int sink_report_changes(struct import *import, struct sink_process *process, uint64_t until_ns)
{
    struct sink_changes *to_come = &process->to_come;
    if (to_come->are_reported)
        return 0;
    int result = 0;
    to_come->are_reported = true;
    while (!result && to_come->first < to_come->end &&
           to_come->change[to_come->first].time_ns <= until_ns) {
        const struct sink_change change = to_come->change[to_come->first++];
        result = import_launch_state(import, change.launch, change.state, change.time_ns);
    }
    to_come->are_reported = false;
    return result;
}

int import_lasting_call(struct import *import, const struct import_call *call, uint64_t duration_ns)
{
    struct import_call issued = *call;
    issued.state = IMPORT_ISSUED;
    if (import_call(import, &issued))
        return -1;
    const struct import_launch launch = import_last_launch(import);
    struct sink_process *process = import->process[import->member[call->member]->process];
    struct lane *lane = launch.lane;
    uint64_t begin_ns = lane->end_ns > call->time_ns ? lane->end_ns : call->time_ns;
    lane->end_ns = begin_ns + duration_ns;
    const struct sink_change begins = {begin_ns, launch, IMPORT_STARTED},
                             ends = {lane->end_ns, launch, IMPORT_DONE};
    return expect(process, &begins) || expect(process, &ends) ? sink_no_memory(import) : 0;
}
