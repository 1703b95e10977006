/* hazard_events.c: feeds what touches memory to the hazards of its process (hazards.h): DC301,
 * DC302, DC303, DC305. */
#include "analyzer/checks/hazard/hazard_events.h"
#include "analyzer/hazard/hazards.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

void hazards_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct use use[USES_MAX];
    /* Of what orders operations nothing is known. */
    if (operation->process->info.lacks & LACKS_CUDA)
        return;
    /* A graph's launch reports what was captured into it. */
    if (operation->record.flags & RECORD_FLAG_REPLAY ||
        !(operation->record.op.sendbuff || operation->record.op.recvbuff))
        return;
    struct work work = {operation->stream, operation->place};
    uint32_t uses = uses_of_operation(&operation->record, operation->member->comm->nranks, use);
    hazards_put(analyzer, event, &work, FLIGHT_OPERATION, use, uses);
}

void hazards_on_launch(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    struct use use[USES_MAX];
    if (record->result != 0 || record->api == API_cudaLaunchHostFunc ||
        record->api == API_cudaStreamAddCallback)
        return;
    hazards_put(analyzer, event, &event->thread->work, FLIGHT_KERNEL, use,
                uses_of_kernel(record, use));
}

static void copy(struct analyzer *analyzer, const struct event *event)
{
    struct use use[USES_MAX];
    if (event->record->result != 0)
        return;
    hazards_put(analyzer, event, &event->thread->work, FLIGHT_COPY, use,
                uses_of_copy(event->process, event->record, use));
}

/* Allocated anew: the allocator orders it with what used it before. (Freed:
 * use_after_free.c.) */
static void memory_changes_hands(struct process *process, const struct record *record)
{
    uint64_t begin = record->memory.pointer, end;
    if (record->result != 0 || record->flags & RECORD_FLAG_CAPTURE || !begin)
        return;
    /* How far an opened IPC handle reaches is not known. */
    if (!record->memory.bytes || __builtin_add_overflow(begin, record->memory.bytes, &end))
        end = record->api == API_cudaIpcOpenMemHandle ? UINT64_MAX : begin;
    hazards_forget_memory(process, begin, end);
}

void hazards_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    switch (event->class) {
    case CLASS_MEMORY:
        memory_changes_hands(thread->process, record);
        return;
    case CLASS_COPY:
    case CLASS_WAIT:
        if (thread->work.stream)
            copy(analyzer, event);
        return;
    case CLASS_GRAPH:
        if (record->api == API_cudaGraphLaunch && record->result == 0)
            hazards_launch_graph(analyzer, event);
        return;
    default:
        return;
    }
}

void hazards_on_setup(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    (void)analyzer;
    if (record->api == API_ncclCommFinalize || record->api == API_ncclCommDestroy ||
        record->api == API_ncclCommAbort || record->api == API_ncclCommRevoke)
        hazards_forget_member(process, record->comm.comm, record->comm.rank);
    if (record->api == API_ncclCommShrink && record->comm.flags & RECORD_COMM_ABORTS)
        hazards_forget_member(process, record->comm.parent, record->comm.rank);
}

void hazards_on_lost(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    if (!process->lost.control && !process->lost.bulk)
        return; /* of hashes of payloads: the order of the work is complete */
    struct hazards *hazards = hazards_of(process);
    if (!hazards) {
        analyzer->failed = true;
        return;
    }
    hazards_switch_off(hazards);
}

void hazards_on_waits(struct analyzer *analyzer, const struct event *event)
{
    (void)event;

    hazards_report(analyzer);
}
