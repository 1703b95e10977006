/* uninitialized_read.c: DC310: an operation reads memory that nothing ever wrote, as far as that
 * can be known (unwritten.h). Always possible only: kernels reach memory in ways that nobody sees.
 */
#include "analyzer/hazard/accesses.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/graphs.h"
#include "analyzer/hazard/hazards.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/process.h"
#include "analyzer/hazard/unwritten.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

enum { CALL_BYTES = 256 };

static void unwritten_report(struct analyzer *analyzer, const struct operation *operation,
                             const struct allocation *allocation)
{
    const struct record *record = &operation->record;
    struct one_call one = {
        .check = &check_uninitialized_read,
        .certainty = POSSIBLE,
        .comm = operation->member->comm,
        .member = operation->member,
        .process = operation->process,
        .record = record,
        .site = operation->site,
    };
    char call[CALL_BYTES], name[COMM_TITLE_BYTES];
    struct text what = {0};
    text_add(&what,
             "rank %d: %s of %s reads memory that nothing has been seen to write since it was "
             "allocated (%llu bytes)",
             one_call_rank(&one), record_text(record, call, sizeof call),
             comm_title(operation->member->comm, name), (unsigned long long)allocation->bytes);
    one_call_report(analyzer, &one, &what,
                    "Fill the buffer first (cudaMemsetAsync on the operation's stream), or "
                    "pass the one that was meant.");
}

static void unwritten_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    const struct record *record = &operation->record;
    struct process *process = operation->process;
    struct op_extent extent;
    uint64_t send = record->op.sendbuff, recv = record->op.recvbuff, end;
    if (!op_extent_of(record, operation->member->comm->nranks, &extent))
        return;
    bool is_run = !(record->flags & RECORD_FLAG_CAPTURE);
    if (is_run && !analyzer->options.no_inferred && !hazards_are_off(process->hazards) && send &&
        extent.send_bytes && !__builtin_add_overflow(send, extent.send_bytes, &end)) {
        const struct allocation *allocation = unwritten_find(process, send, end);
        if (allocation)
            unwritten_report(analyzer, operation, allocation);
        unwritten_wrote(process, send, end); /* said once */
    }
    if (recv && extent.recv_bytes && !__builtin_add_overflow(recv, extent.recv_bytes, &end))
        unwritten_wrote(process, recv, end);
}

static void unwritten_on_launch(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    (void)analyzer;
    uint32_t count = record->launch.count < USES_MAX ? record->launch.count : USES_MAX;
    if (record->launch.known & LAUNCH_PARTLY_KNOWN)
        unwritten_wrote_anything(process);
    for (uint32_t i = 0; i < count; i++)
        if (record->launch.written >> i & 1)
            unwritten_wrote_all(process, record->launch.pointer[i]);
}

static void unwritten_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    (void)analyzer;
    struct use use[USES_MAX];
    enum api_class class = api_class_of(record->api);
    if (class == CLASS_GRAPH && record->api == API_cudaGraphLaunch) {
        const struct graph_content *content = graph_launched(thread->process, record->graph.exec);
        if (!content || content->partly_known)
            unwritten_wrote_anything(thread->process);
        return;
    }
    if (class != CLASS_COPY && class != CLASS_WAIT)
        return;
    uint32_t uses = uses_of_copy(thread->process, record, use);
    for (uint32_t i = 0; i < uses; i++)
        if (use[i].access.writes)
            unwritten_wrote(thread->process, use[i].stretch.begin, use[i].stretch.end);
}

const struct check check_uninitialized_read = {
    .code = DC310,
    .name = "uninitialized-read",
    .family = FAMILY_HAZARD,
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .title = "a collective reads uninitialized memory",
    .text =
        "A collective or send reads device memory of an allocation that was recorded from its "
        "beginning. Since then no copy, memset or operation has written a byte of what is "
        "read, and no kernel was given a pointer into the allocation.\n\n"
        "It shows as NaN or nonsense on every rank, or not at all: new memory is often zero. It is "
        "harmless as a warm-up or a barrier.\n\n"
        "It is always only possible: a kernel may have written the memory through a pointer "
        "that was stored in memory, and kernels of libraries with their own CUDA runtime are "
        "not seen. Memory that another process can access (IPC), that peers or the host can "
        "write, and work of graphs that were captured before ddpcheck recorded, are left out.",
    .causes = CAUSES(
        {"The wrong one of two buffers is passed: the receive buffer, or that of the next step.",
         "Another buffer of the same size was filled just before the call."},
        {"A fill that is missing in a branch: an empty batch, a first step, a rank with nothing to "
         "send.",
         "Only some ranks or steps show it."},
        {"A warm-up or a barrier of the program's own: the values are not used.",
         "It is the communicator's first operation and nothing reads the result: suppress it."}),
    .source = "CUDA 13.0 Runtime API, cudaMalloc: memory is not cleared",
    .example = "cudaMalloc(&flag, sizeof *flag);\nncclAllReduce(flag, flag, 1, ncclFloat, ncclMax, "
               "comm, stream);\n",
    .fix_c = "cudaMalloc(&flag, sizeof *flag);\ncudaMemsetAsync(flag, 0, sizeof *flag, "
             "stream);\nncclAllReduce(flag, flag, 1, ncclFloat, ncclMax, comm, stream);\n",
    .fix_torch = "flag = torch.zeros(1, device='cuda')       # not "
                 "torch.empty\ndist.all_reduce(flag, op=dist.ReduceOp.MAX)\n",
    .on = {[EVENT_OPERATION] = unwritten_on_operation,
           [EVENT_LAUNCH] = unwritten_on_launch,
           [EVENT_CALL] = unwritten_on_call},
};
