/* use_after_free.c: DC306: what an operation uses is given back while it may still run, or was
 * given back before.
 *
 * Rules: cudaFreeAsync, "the allocation must not be accessed after stream execution reaches the
 * free"; cudaFree, "will not perform any implicit synchronization when the pointer was allocated
 * with cudaMallocAsync" (CUDA runtime API; of other memory it waits for the device); memory of
 * cudaMallocAsync "can be accessed in stream order" behind its allocation only (programming guide,
 * "Stream Ordered Memory Allocator"). ncclMemFree unmaps without waiting. Legal are
 * cudaStreamDestroy and cudaEventDestroy while work is under way, which ends first, and
 * ncclCommFinalize and ncclCommDestroy, which complete what was issued; a graph must not be
 * launched after that (NCCL user guide, "Using NCCL with CUDA Graphs"). */
#include "analyzer/checks/hazard/registrations.h"
#include "analyzer/hazard/accesses.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/dead_streams.h"
#include "analyzer/model/freed.h"
#include "analyzer/model/graphs.h"
#include "analyzer/hazard/hazards.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

/* Two calls and what is between them. */
struct ending {
    struct process *process;
    const struct member *member;
    const struct record *later, *earlier; /* earlier: NULL, not known */
    struct site later_site, earlier_site;
    enum certainty certainty;
};

static void freed_add_side(struct draft *draft, const struct ending *ending,
                           const struct record *record, const struct site *site)
{
    draft_rank(draft, draft_side_record(draft, record, site), ending->member);
}

static void freed_report(struct analyzer *analyzer, const struct ending *ending,
                         const struct record *operation, enum headline headline, enum advice advice,
                         const struct values *values)
{
    struct hazard_key key = {
        .comm = ending->member->comm->id,
        .rank = ending->member->rank,
        .certainty = ending->certainty,
        .place = {hazard_place_of(ending->later)},
    };
    if (ending->earlier)
        key.place[1] = hazard_place_of(ending->earlier);
    bool is_left_out = analyzer->options.no_inferred && ending->certainty == POSSIBLE;
    struct draft *draft =
        is_left_out ? NULL : hazards_found(ending->process, &key, ending->later_site.time_ns);
    if (!draft)
        return;
    *draft = draft_new(&check_use_after_free, ending->certainty, ending->member->comm);
    draft->merges_sides = true;
    freed_add_side(draft, ending, ending->later, &ending->later_site);
    if (ending->earlier)
        freed_add_side(draft, ending, ending->earlier, &ending->earlier_site);
    draft->finding.number = operation->op.number;
    draft->finding.has_number = !(operation->flags & RECORD_FLAG_CAPTURE);
    draft->finding.first_ns = draft->finding.last_ns = ending->later_site.time_ns;
    draft_headline(draft, headline, advice, values);
}

/* Memory is freed while an operation may use it, or while it is registered. */
static void freed_in_flight(struct analyzer *analyzer, struct thread *thread,
                            const struct record *record, uint64_t begin, uint64_t end,
                            const struct stream_state *stream, enum certainty certainty)
{
    const struct flight *flight = hazards_in_flight(thread->process, begin, end, stream);
    if (!flight) {
        registrations_check_free(analyzer, thread, record, begin, end);
        return;
    }
    struct ending ending = {
        thread->process, flight->member, record, &flight->record, thread_site(thread, record),
        flight->site,    certainty,
    };
    char title[COMM_TITLE_BYTES];
    struct values values = {0};
    flight_values(flight, 1, &values, title);
    freed_report(analyzer, &ending, &flight->record, HEADLINE_FREED_IN_FLIGHT,
                 ADVICE_FREED_IN_FLIGHT, &values);
}

/* An operation is given memory that was freed before, or that its stream can't use yet. */
static void freed_check_use(struct analyzer *analyzer, const struct operation *operation,
                            const struct use *use)
{
    struct process *process = operation->process;
    const struct allocation *allocation = memory_find(process, use->stretch.begin);
    const struct freed *freed =
        allocation ? NULL : freed_find(process, use->stretch.begin, use->stretch.end);
    bool early = allocation && allocation->stream_ordered && allocation->birth.position &&
                 order_before(process, &allocation->birth, operation->stream) == ORDER_NONE;
    if (!freed && !early)
        return;
    struct record earlier = {.api = freed ? freed->api : API_cudaMallocAsync};
    const struct site *site = freed ? &freed->site : &allocation->site;
    earlier.stack = site->stack;
    struct ending ending = {
        process, operation->member, &operation->record, &earlier, operation->site, *site, CERTAIN,
    };
    const struct values values = {.call = {call_of_api(earlier.api)}};
    if (freed)
        freed_report(analyzer, &ending, &operation->record, HEADLINE_GIVEN_FREED,
                     ADVICE_GIVEN_FREED, &values);
    else
        freed_report(analyzer, &ending, &operation->record, HEADLINE_GIVEN_EARLY,
                     ADVICE_GIVEN_EARLY, &values);
}

static void freed_check_stream(struct analyzer *analyzer, const struct operation *operation)
{
    const struct site *destroyed = dead_streams_find(operation->process, operation->record.stream);
    if (!destroyed)
        return;
    struct record earlier = {.api = API_cudaStreamDestroy, .stack = destroyed->stack};
    struct ending ending = {
        operation->process, operation->member, &operation->record, &earlier, operation->site,
        *destroyed,         CERTAIN,
    };
    freed_report(analyzer, &ending, &operation->record, HEADLINE_DESTROYED_STREAM,
                 ADVICE_DESTROYED_STREAM, NULL);
}

static void freed_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct use use[USES_MAX];
    if (operation->record.flags & (RECORD_FLAG_REPLAY | RECORD_FLAG_CAPTURE) ||
        !operation->stream || hazards_are_off(operation->process->slot.hazards))
        return;
    freed_check_stream(analyzer, operation);

    uint32_t uses = uses_of_operation(&operation->record, operation->member->comm->nranks, use);
    for (uint32_t i = 0; i < uses; i++)
        freed_check_use(analyzer, operation, &use[i]);
}

static void memory_freed(struct analyzer *analyzer, struct thread *thread,
                         const struct record *record)
{
    struct process *process = thread->process;
    uint64_t pointer = record->memory.pointer;
    const struct allocation *allocation = memory_find(process, pointer);
    const struct freed *freed = allocation ? NULL : freed_find(process, pointer, pointer + 1);
    uint64_t bytes = 1;
    if (allocation && allocation->base == pointer)
        bytes = allocation->bytes;
    else if (freed && freed->base == pointer)
        bytes = freed->bytes;
    bool is_on_stream = record->api == API_cudaFreeAsync;
    if (!pointer || record->result != 0 || record->flags & RECORD_FLAG_CAPTURE ||
        (is_on_stream && !thread->work.stream))
        return;
    enum certainty certainty = record->api == API_cudaHostUnregister ? POSSIBLE : CERTAIN;
    freed_in_flight(analyzer, thread, record, pointer, pointer + bytes,
                    is_on_stream ? thread->work.stream : NULL, certainty);
    hazards_forget_memory(process, pointer, pointer + bytes);
}

/* cudaFree, which does not wait for all memory. */
static void freed_without_waiting(struct analyzer *analyzer, struct thread *thread,
                                  const struct record *record)
{
    const struct allocation *allocation = memory_find(thread->process, record->wait.dst);
    if (!allocation || allocation->base != record->wait.dst)
        return;
    uint64_t begin = allocation->base, end = begin + allocation->bytes;
    if (!allocation->stream_ordered) {
        registrations_check_free(analyzer, thread, record, begin, end);
        return;
    }
    freed_in_flight(analyzer, thread, record, begin, end, NULL, CERTAIN);
    hazards_forget_memory(thread->process, begin, end);
}

/* Memory of a captured operation that was freed and not allocated again; NULL: none. */
static const struct freed *freed_under_graph(const struct process *process,
                                             const struct interval *range)
{
    return memory_find(process, range->begin) ? NULL
                                              : freed_find(process, range->begin, range->end);
}

static void graph_launched_late(struct analyzer *analyzer, struct thread *thread,
                                const struct record *record)
{
    const struct graph_content *content = graph_launched(thread->process, record->graph.exec);
    for (uint32_t i = 1; content && i <= content->ranges.used; i++) {
        const struct flight *flight = content->ranges.node[i].flight;
        const struct freed *freed =
            flight && flight->member ? freed_under_graph(thread->process, &content->ranges.node[i])
                                     : NULL;
        if (!flight || !flight->member || (!flight->member->destroyed && !freed))
            continue;
        struct ending ending = {
            thread->process, flight->member, record, &flight->record, thread_site(thread, record),
            flight->site,    CERTAIN,
        };
        char title[COMM_TITLE_BYTES];
        struct values values = {.call = {call_of_api(freed ? freed->api : 0)}};
        flight_values(flight, 1, &values, title);
        if (freed)
            freed_report(analyzer, &ending, &flight->record, HEADLINE_GRAPH_AFTER_FREE,
                         ADVICE_GRAPH_AFTER_FREE, &values);
        else
            freed_report(analyzer, &ending, &flight->record, HEADLINE_GRAPH_AFTER_COMM,
                         ADVICE_GRAPH_AFTER_COMM, &values);
        return;
    }
}

static void freed_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (hazards_are_off(thread->process->slot.hazards))
        return;
    switch (record->api) {
    case API_cudaFreeAsync:
    case API_ncclMemFree:
    case API_cudaHostUnregister:
        memory_freed(analyzer, thread, record);
        return;
    case API_cudaFree:
        freed_without_waiting(analyzer, thread, record);
        return;
    case API_cudaGraphLaunch:
        graph_launched_late(analyzer, thread, record);
        return;
    default:
        return;
    }
}

const struct check check_use_after_free = {
    .code = DC306,
    .name = "use-after-free",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .off_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(CODES_HANGS, DC404, DC308, DC309),
    .explains_later = CODES(DC503),
    .title = "memory, a stream or a communicator is freed while an operation uses it, or was freed "
             "before",
    .text = "Memory, a stream or a communicator is freed while an operation may still use it, or "
            "an operation uses what was freed before. Freed too early: cudaFreeAsync on a stream "
            "that does not wait for the operation; ncclMemFree, or cudaFree of memory from "
            "cudaMallocAsync (which does not wait), while the host has not waited. Used too late: "
            "memory or a stream that was freed, or a graph whose communicator was destroyed or "
            "whose memory was freed. Used too early: memory of cudaMallocAsync on another stream "
            "that does not wait for the allocation. Memory that is registered with a communicator, "
            "or is a window of one, is reported if it is freed before it is deregistered. So is a "
            "registration or window that is removed while an operation on its memory may still "
            "run. Registrations made in an ncclGroup are not followed.\n\n"
            "It shows as values of another tensor in the result, as an illegal address, or not at "
            "all until the allocator reuses the memory at the wrong moment.\n\n"
            "Calls that are safe are not reported: cudaFree of memory from cudaMalloc waits for "
            "the device, cudaStreamDestroy and cudaEventDestroy let pending work finish, and "
            "ncclCommFinalize and ncclCommDestroy complete what was issued. It is certain, except "
            "for cudaHostUnregister, and for a registration that is removed too early: whether "
            "NCCL uses it depends on its algorithm. False positive: the memory may have been "
            "allocated again by calls that ddpcheck does not see.\n\n" HAZARD_ORDER_TEXT,
    .causes = CAUSES(
        {"A tensor used on a side stream is freed by its last reference: record_stream is missing.",
         "The free is the allocator's or a cudaFreeAsync on the stream that allocated it.",
         {.function = "cudaFreeAsync "}},
        {"Destroying a stream or a communicator in the middle of an error path.",
         "The line of the free is in cleanup code.",
         {.function = "cudaStreamDestroy |cudaEventDestroy |ncclCommDestroy |ncclCommAbort "}}),
    .source = "CUDA 13.0 Runtime API, cudaFree and cudaFreeAsync; CUDA 13.0 C++ Programming Guide, "
              "\"Stream Ordered Memory Allocator\"; PyTorch 2.10 documentation, "
              "torch.Tensor.record_stream",
    .example = "ncclAllReduce(bucket, bucket, n, ncclFloat, ncclSum, comm, "
               "communication);\ncudaFreeAsync(bucket, compute);      /* compute does not wait for "
               "communication */\n",
    .fix_c = "ncclAllReduce(bucket, bucket, n, ncclFloat, ncclSum, comm, "
             "communication);\ncudaFreeAsync(bucket, communication);\n",
    .fix_torch = "bucket.record_stream(communication)       # before the last reference goes\n",
    .on = {[EVENT_OPERATION] = freed_on_operation,
           [EVENT_CALL] = freed_on_call,
           [EVENT_NCCL] = registrations_on_nccl,
           [EVENT_LEAVE] = registrations_on_leave},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct registrations)},
    .state_end = {[OWNER_PROCESS] = registrations_end},
};
