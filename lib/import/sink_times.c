/* sink_times.c: what processes did beside their calls: iterations, and work that took time. */
#include <stdio.h>
#include <string.h>

#include "lib/import/sink.h"

int import_iteration(struct import *import, int index, uint64_t number, uint64_t time_ns)
{
    struct sink_process *process = import->process[index];
    struct record record = {.api = API_nvtxRangePop, .thread = 1, .device = RECORD_NO_DEVICE};
    if (process->in_iteration && sink_record(import, process, time_ns, &record, 0))
        return -1;
    char name[40];
    int bytes = snprintf(name, sizeof name, "iteration %llu", (unsigned long long)number);
    record.api = API_nvtxRangePush;
    record.range.text = import_text(import, index, name, (size_t)bytes);
    process->in_iteration = true;
    return record.range.text ? sink_record(import, process, time_ns, &record, 0) : -1;
}

int import_activity(struct import *import, int process, const struct import_activity *activity)
{
    struct record record = {.api = API_notice_activity, .thread = 1, .device = RECORD_NO_DEVICE};
    record.activity.name = import_text(import, process, activity->name, strlen(activity->name));
    record.activity.begin_ns = activity->begin_ns;
    record.activity.iteration = activity->iteration == UINT64_MAX ? 0 : activity->iteration + 1;
    record.activity.kind = activity->kind;
    return sink_record(import, import->process[process], activity->end_ns, &record, 0);
}
