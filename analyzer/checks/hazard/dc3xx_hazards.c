/* dc3xx_hazards.c: feeds what touches memory to the hazards of its process (hazards.h): DC301,
 * DC302, DC303, DC305. */
#include "analyzer/hazard/hazards.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

static int operation(struct analyzer *analyzer, const struct operation *operation)
{
    struct use use[USES_MAX];
    /* Of what orders operations nothing is known. */
    if (operation->process->info.lacks & LACKS_CUDA)
        return 0;
    /* A graph's launch tells of what was captured into it. */
    if (operation->record.flags & RECORD_FLAG_REPLAY ||
        !(operation->record.op.sendbuff || operation->record.op.recvbuff))
        return 0;
    struct work work = {operation->stream, operation->place};
    uint32_t uses = uses_of_operation(&operation->record, operation->member->comm->nranks, use);
    return hazards_put(analyzer, operation->thread, &work, &operation->record, FLIGHT_OPERATION,
                       operation->member, use, uses);
}

static int launch(struct analyzer *analyzer, struct process *process, const struct record *record)
{
    struct use use[USES_MAX];
    struct thread *thread = process_thread(process, record->thread);
    if (!thread)
        return -1;
    if (record->result != 0 || record->api == API_cudaLaunchHostFunc ||
        record->api == API_cudaStreamAddCallback)
        return 0;
    return hazards_put(analyzer, thread, &thread->work, record, FLIGHT_KERNEL, NULL, use,
                       uses_of_kernel(record, use));
}

static int copy(struct analyzer *analyzer, struct thread *thread, const struct record *record)
{
    struct use use[USES_MAX];
    if (record->result != 0)
        return 0;
    return hazards_put(analyzer, thread, &thread->work, record, FLIGHT_COPY, NULL, use,
                       uses_of_copy(thread->process, record, use));
}

/* Given out anew: whoever gave it answers for the order with what used it before. (Freed:
 * dc306_freed.c.) */
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

static int call(struct analyzer *analyzer, struct thread *thread, const struct record *record)
{
    switch (api_class_of(record->api)) {
    case CLASS_MEMORY:
        memory_changes_hands(thread->process, record);
        return 0;
    case CLASS_COPY:
    case CLASS_WAIT:
        return thread->work.stream ? copy(analyzer, thread, record) : 0;
    case CLASS_GRAPH:
        return record->api == API_cudaGraphLaunch && record->result == 0
                   ? hazards_launch_graph(analyzer, thread, record)
                   : 0;
    default:
        return 0;
    }
}

static int setup(struct analyzer *analyzer, struct process *process, const struct record *record,
                 struct member *member)
{
    (void)analyzer;
    (void)member;
    if (record->api == API_ncclCommFinalize || record->api == API_ncclCommDestroy ||
        record->api == API_ncclCommAbort || record->api == API_ncclCommRevoke)
        hazards_forget_comm(process, record->comm.comm);
    return 0;
}

static int lost(struct analyzer *analyzer, struct process *process)
{
    (void)analyzer;
    struct hazards *hazards = hazards_of(process);
    if (!hazards)
        return -1;
    hazards_switch_off(hazards);
    return 0;
}

static int waits(struct analyzer *analyzer, struct wait_graph *graph)
{
    (void)graph;
    return hazards_tell(analyzer);
}

const struct check_group checks_hazards = {
    .name = "hazards",
    .operation = operation,
    .setup = setup,
    .launch = launch,
    .call = call,
    .lost = lost,
    .waits = waits,
};
