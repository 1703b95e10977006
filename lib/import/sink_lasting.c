/* sink_lasting.c: operations with a known duration on the GPU. Their begin and end are reported
 * when the process's time has come to them, as a host is ahead of its GPU. */
#include "lib/import/sink.h"

/* An operation will be that far. */
struct sink_change {
    struct timed timed;
    struct import_launch launch;
    enum import_state state;
};

static int expect(struct sink_process *process, uint64_t time_ns, enum import_state state,
                  struct import_launch launch)
{
    const struct sink_change change = {{.time_ns = time_ns}, launch, state};
    process->to_come.item_bytes = sizeof change;
    return time_heap_put(&process->to_come, &change);
}

int sink_report_changes(struct import *import, struct sink_process *process, uint64_t until_ns)
{
    const struct timed *first;
    int result = 0;
    if (process->reports_changes)
        return 0;
    process->reports_changes = true;
    while (!result && (first = time_heap_first(&process->to_come)) && first->time_ns <= until_ns) {
        struct sink_change change;
        time_heap_take(&process->to_come, &change);
        result = import_launch_state(import, change.launch, change.state, change.timed.time_ns);
    }
    process->reports_changes = false;
    return result;
}

int import_lasting_call(struct import *import, const struct import_call *call,
                        struct import_lasting lasting)
{
    struct sink_process *process = import->process[import->member[call->member]->process];
    bool is_done = call->state == IMPORT_DONE, is_measured = lasting.duration_ns && call->time_ns,
         is_counted = is_done && !lasting.runs_with_last;
    process->lasting += is_counted && is_measured;
    process->unmeasured += is_counted && !is_measured;
    if (!call->time_ns || call->state < IMPORT_STARTED)
        return import_call(import, call);
    struct import_call issued = *call;
    issued.state = IMPORT_ISSUED;
    if (import_call(import, &issued))
        return -1;
    const struct import_launch launch = import_last_launch(import);
    struct lane *lane = launch.lane;
    uint64_t free_ns = lasting.runs_with_last ? lane->begin_ns : lane->end_ns;
    lane->begin_ns = free_ns > call->time_ns ? free_ns : call->time_ns;
    uint64_t end_ns = lane->begin_ns + (is_done ? lasting.duration_ns : 0);
    if (lane->end_ns < end_ns)
        lane->end_ns = end_ns;
    bool failed = expect(process, lane->begin_ns, IMPORT_STARTED, launch) ||
                  (is_done && expect(process, lane->end_ns, IMPORT_DONE, launch));
    return failed ? sink_no_memory(import) : 0;
}

uint32_t sink_lacks_durations(const struct sink_process *process)
{
    enum { UNMEASURED_MOST_PERCENT = 10 };
    uint64_t all = process->lasting + process->unmeasured;
    return 100 * process->unmeasured > UNMEASURED_MOST_PERCENT * all ? LACKS_DURATIONS : 0;
}
