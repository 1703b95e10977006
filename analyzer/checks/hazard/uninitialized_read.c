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
#include "analyzer/states.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

enum { UNREAD_MAX = 4 };

/* A reduction of one element in place, of memory that nothing wrote: a barrier, as PyTorch 2.15
 * makes it, unless somebody reads the result. */
struct unread {
    uint64_t begin, end; /* the element; 0: unused */
    uint64_t comm, allocation_bytes;
    int rank;
    struct record record;
    struct site site;
};
struct unread_results {
    struct unread kept[UNREAD_MAX];
    unsigned next; /* is replaced */
};

static void unwritten_report(struct analyzer *analyzer, const struct member *member,
                             const struct record *record, const struct site *site,
                             uint64_t allocation_bytes)
{
    struct one_call one = {
        .check = &check_uninitialized_read,
        .certainty = POSSIBLE,
        .comm = member->comm,
        .member = member,
        .process = site->process,
        .record = record,
        .site = *site,
    };
    const struct values values = {.value = {(int64_t)allocation_bytes}};
    one_call_headline(analyzer, &one, HEADLINE_UNINITIALIZED_READ, ADVICE_UNINITIALIZED_READ,
                      &values);
}

static bool is_like_a_barrier(const struct record *record)
{
    return record->api == API_ncclAllReduce && record->op.count == 1 &&
           record->op.sendbuff == record->op.recvbuff;
}

static void keep_unread(struct analyzer *analyzer, const struct operation *operation, uint64_t end,
                        uint64_t allocation_bytes)
{
    struct unread_results *results =
        state_get(analyzer, &check_uninitialized_read, OWNER_PROCESS, &operation->process->states);
    if (results)
        results->kept[results->next++ % UNREAD_MAX] =
            (struct unread){.begin = operation->record.op.sendbuff,
                            .end = end,
                            .comm = operation->member->comm->id,
                            .allocation_bytes = allocation_bytes,
                            .rank = operation->member->rank,
                            .record = operation->record,
                            .site = operation->site};
}

/* [begin, end) is read, or written over: then nobody reads the result. */
static void take_use(struct analyzer *analyzer, struct process *process, uint64_t begin,
                     uint64_t end, bool is_read)
{
    struct unread_results *results =
        state_find(analyzer, &check_uninitialized_read, OWNER_PROCESS, process->states);
    for (int i = 0; results && i < UNREAD_MAX; i++) {
        struct unread *unread = &results->kept[i];
        if (begin >= unread->end || end <= unread->begin)
            continue;
        const struct member *member = member_find(analyzer, unread->comm, unread->rank);
        if (is_read && member)
            unwritten_report(analyzer, member, &unread->record, &unread->site,
                             unread->allocation_bytes);
        *unread = (struct unread){0};
    }
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
    if (is_run && !analyzer->options.no_inferred && !hazards_are_off(process->slot.hazards) &&
        send && extent.send_bytes && !__builtin_add_overflow(send, extent.send_bytes, &end)) {
        const struct allocation *allocation = unwritten_find(process, send, end);
        if (allocation && is_like_a_barrier(record))
            keep_unread(analyzer, operation, end, allocation->bytes);
        else if (allocation)
            unwritten_report(analyzer, operation->member, record, &operation->site,
                             allocation->bytes);
        unwritten_wrote(process, send, end); /* said once */
    }
    if (recv && extent.recv_bytes && !__builtin_add_overflow(recv, extent.recv_bytes, &end))
        unwritten_wrote(process, recv, end);
}

static void unwritten_on_launch(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    uint32_t count = record->launch.count < USES_MAX ? record->launch.count : USES_MAX;
    if (record->launch.known & LAUNCH_PARTLY_KNOWN)
        unwritten_wrote_anything(process);
    for (uint32_t i = 0; i < count; i++) {
        bool is_written = record->launch.written >> i & 1;
        take_use(analyzer, process, record->launch.pointer[i], record->launch.pointer[i] + 1,
                 !is_written);
        if (is_written)
            unwritten_wrote_all(process, record->launch.pointer[i]);
    }
}

static void unwritten_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
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
    for (uint32_t i = 0; i < uses; i++) {
        take_use(analyzer, thread->process, use[i].stretch.begin, use[i].stretch.end,
                 !use[i].access.writes);
        if (use[i].access.writes)
            unwritten_wrote(thread->process, use[i].stretch.begin, use[i].stretch.end);
    }
}

/* Peers may write to a window, from kernels as well. */
static void unwritten_on_nccl(struct analyzer *analyzer, const struct event *event)
{
    (void)analyzer;
    if (event->record->api == API_ncclCommWindowRegister)
        unwritten_wrote_all(event->thread->process, event->record->comm.pointer);
}

const struct check check_uninitialized_read = {
    .code = DC310,
    .name = "uninitialized-read",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_PROCESS,
    .off_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .title = "a collective reads uninitialized memory",
    .text =
        "A collective or send reads device memory that was allocated when the process had a "
        "communicator already (what it did before may not be recorded). Since then no copy, memset "
        "or operation has written a byte of what is "
        "read, and no kernel was given a pointer into the allocation.\n\n"
        "It shows as NaN or nonsense on every rank, or not at all: new memory is often zero. It is "
        "harmless as a warm-up or a barrier: a reduction of one element in place is reported once "
        "something reads the result.\n\n"
        "It is always only possible: a kernel may have written the memory through a pointer "
        "that was stored in memory, and kernels of libraries with their own CUDA runtime are "
        "not seen. Memory that another process can access (IPC), that is a window of a "
        "communicator, that the "
        "host can write, and work of graphs that were captured before ddpcheck recorded, are left "
        "out.",
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
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct unread_results)},
    .on = {[EVENT_OPERATION] = unwritten_on_operation,
           [EVENT_LAUNCH] = unwritten_on_launch,
           [EVENT_CALL] = unwritten_on_call,
           [EVENT_NCCL] = unwritten_on_nccl},
};
