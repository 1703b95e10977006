/* dc301_writes.c: DC301: a buffer is written while an operation that reads or writes it is in flight.
 *
 * The rule is NCCL's: calls return when the operation is put on its stream, and it runs "asynchronously" there
 * (NCCL user guide, "CUDA Stream Semantics"); until it is over its buffers belong to it. CUDA orders a write on
 * another stream after it only by an event, by the legacy default stream, or by a host that waited before it
 * issued the write (CUDA programming guide, "Asynchronous Concurrent Execution"). What is ordered is told by the
 * clocks of streams.h; whether it went well this time is not asked.
 *
 * A write is told at the next tick, which comes after all rings were read: records that were lost, and could
 * hold the missing order, have been counted by then, and what was not told is dropped. */
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/array.h"
#include "analyzer/comm.h"
#include "analyzer/findings.h"
#include "analyzer/hazards.h"
#include "analyzer/inflight.h"
#include "analyzer/process.h"
#include "analyzer/streams.h"
#include "lib/trace/names.h"

enum { CALL_BYTES = 256, SITES_MAX = 256 };

/* Writes from one place into operations of one communicator: one finding. */
struct write_site {
    uint64_t comm, stack, function;
    uint16_t api;
    bool told, holds_draft;
    uint32_t finding;           /* 0 while not told, or kept quiet */
    uint64_t untold, last_ns;   /* writes since it was told */
    struct draft draft;         /* of the first one */
};

struct hazards {
    bool off;                   /* records were lost: order may be missing */
    bool has_untold;
    struct inflight inflight;
    struct write_site *site;
    uint32_t sites, capacity;
};

/* A write as it is checked. */
struct write {
    struct process *process;
    struct thread *thread;
    const struct record *record;
    struct stretch stretch;
    bool is_kernel;
};

static void drop_untold(struct hazards *hazards)
{
    for (uint32_t i = 0; i < hazards->sites; i++) {
        if (hazards->site[i].holds_draft)
            draft_drop(&hazards->site[i].draft);
        hazards->site[i].holds_draft = false;
        hazards->site[i].untold = 0;
    }
    hazards->has_untold = false;
}

void hazards_free(struct hazards *hazards)
{
    if (!hazards)
        return;
    drop_untold(hazards);
    inflight_clear(&hazards->inflight);
    free(hazards->site);
    free(hazards);
}

static int operation(struct analyzer *analyzer, const struct operation *operation)
{
    (void)analyzer;
    struct process *process = operation->process;
    if (!operation->record.op.sendbuff && !operation->record.op.recvbuff)
        return 0;
    if (!process->hazards && !(process->hazards = calloc(1, sizeof *process->hazards)))
        return -1;
    return process->hazards->off ? 0 : inflight_add(process, &process->hazards->inflight, operation);
}

/* Made if it is not there; NULL with errno = ENOMEM, or if there are SITES_MAX. */
static struct write_site *site_find(struct hazards *hazards, uint64_t comm, const struct record *record)
{
    uint64_t function = api_class_of(record->api) == CLASS_LAUNCH ? record->launch.function : 0;
    for (uint32_t i = 0; i < hazards->sites; i++) {
        struct write_site *site = &hazards->site[i];
        if (site->comm == comm && site->stack == record->stack && site->api == record->api && site->function == function)
            return site;
    }
    if (hazards->sites == SITES_MAX)
        return NULL;
    struct write_site *grown = array_room(hazards->site, sizeof *grown, hazards->sites, &hazards->capacity, 4);
    if (!grown)
        return NULL;
    hazards->site = grown;
    struct write_site *site = &hazards->site[hazards->sites++];
    *site = (struct write_site){.comm = comm, .stack = record->stack, .function = function, .api = record->api};
    return site;
}

static char *write_text(const struct write *write, char *text, size_t bytes)
{
    if (!write->is_kernel)
        return record_text(write->record, text, bytes);
    char kernel[CALL_BYTES - 16];
    const char *name = process_string(write->process, write->record->launch.function);
    snprintf(text, bytes, "kernel %s", *name ? text_kernel_name(name, kernel, sizeof kernel) : "(name not known)");
    return text;
}

/* A kernel's pointer that is not const may be only read through: no harm where the operation only reads, too. */
static struct draft draft_of(const struct write *write, const struct inflight_range *range)
{
    const struct flight *flight = range->flight;
    enum certainty certainty = write->is_kernel && !range->written ? POSSIBLE : CERTAIN;
    struct draft draft = draft_new("DC301", certainty, flight->member->comm);
    struct site site = thread_site(write->thread, write->record);
    char writer[CALL_BYTES], call[CALL_BYTES], name[16];
    struct finding_side *side = draft_side(&draft, write_text(write, writer, sizeof writer), &site);
    draft_rank(&draft, side, flight->member);
    side = draft_side(&draft, record_text(&flight->record, call, sizeof call), &flight->site);
    draft_rank(&draft, side, flight->member);
    draft.finding.number = flight->record.op.number;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = site.time_ns;
    struct text what = {0};
    text_add(&what, "rank %d: %s %s the buffer that %s #%llu of %s %s, and nothing orders it after that operation, which may still run",
             member_shown_rank(flight->member), writer, certainty == CERTAIN ? "writes" : "may write", call,
             (unsigned long long)flight->record.op.number, comm_name(flight->member->comm->id, name),
             range->written ? "writes" : "reads");
    draft_say(&draft, &what, "Let the writing stream wait for the operation first (cudaStreamWaitEvent on an event recorded behind it; in PyTorch work.wait()).");
    return draft;
}

/* 1 if it is a hazard, 0 if not, -1 with errno = ENOMEM. */
static int check(const struct write *write)
{
    struct hazards *hazards = write->process->hazards;
    const struct stream_state *stream = stream_get(write->process, write->record);
    if (!stream)
        return -1;
    const struct inflight_range *range = inflight_meets(write->process, &hazards->inflight, &write->stretch, stream);
    if (!range)
        return 0;
    struct write_site *site = site_find(hazards, range->flight->record.op.comm, write->record);
    if (!site)
        return hazards->sites == SITES_MAX ? 1 : -1;
    if (!site->told && !site->holds_draft) {
        site->draft = draft_of(write, range);
        site->holds_draft = true;
    }
    site->untold++;
    site->last_ns = record_realtime(write->process, write->record);
    hazards->has_untold = true;
    return 1;
}

static bool is_watched(const struct process *process, const struct record *record)
{
    return process->hazards && process->hazards->inflight.count && record->result == 0 &&
           !(record->flags & RECORD_FLAG_CAPTURE);
}

/* Of a kernel's pointers only the first byte is known to be used. */
static int launch(struct analyzer *analyzer, struct process *process, const struct record *record)
{
    (void)analyzer;
    unsigned certain = record->launch.written & ~record->launch.inferred;
    if (!certain || !is_watched(process, record))
        return 0;
    struct write write = {process, process_thread(process, record->thread), record, {0}, true};
    if (!write.thread)
        return -1;
    int count = record->launch.count < 6 ? record->launch.count : 6, result = 0;
    for (int i = 0; i < count && !result; i++) {
        uint64_t pointer = record->launch.pointer[i];
        if (!(certain >> i & 1) || pointer == UINT64_MAX)
            continue;
        write.stretch = (struct stretch){pointer, pointer + 1, 1, 0};
        result = check(&write);
    }
    return result < 0 ? -1 : 0;
}

/* What a copy or memset writes; false if that is not known. Of cudaMemcpy2D's rows the record has no pitch:
 * the first byte is certain. Symbols have no address in the record. */
static bool stretch_of(const struct record *record, struct stretch *stretch)
{
    uint64_t begin = record->copy.dst, bytes = record->copy.bytes, rows = 1;
    *stretch = (struct stretch){.begin = begin, .width = bytes};
    if (api_class_of(record->api) == CLASS_WAIT) {
        begin = stretch->begin = record->wait.dst;
        bytes = record->wait.bytes;
        if (bytes && record->api == API_cudaMemcpy2D)
            bytes = 1;
        stretch->width = bytes;
    } else if (record->api == API_cudaMemcpy2DAsync) {
        stretch->pitch = record->copy.dst_pitch;
        rows = record->copy.height;
    }
    uint64_t before;            /* the last row */
    return begin && bytes && rows && !__builtin_mul_overflow(rows - 1, stretch->pitch, &before) &&
           !__builtin_add_overflow(begin, before, &stretch->end) &&
           !__builtin_add_overflow(stretch->end, bytes, &stretch->end);
}

static int copy(struct thread *thread, const struct record *record)
{
    struct write write = {.process = thread->process, .thread = thread, .record = record};
    if (!is_watched(thread->process, record) || !stretch_of(record, &write.stretch))
        return 0;
    return check(&write) < 0 ? -1 : 0;
}

static int call(struct analyzer *analyzer, struct thread *thread, const struct record *record)
{
    (void)analyzer;
    struct hazards *hazards = thread->process->hazards;
    if (!hazards || !hazards->inflight.count)
        return 0;
    uint64_t pointer = record->memory.pointer, end;
    switch (api_class_of(record->api)) {
    case CLASS_COPY: case CLASS_WAIT:
        return copy(thread, record);
    case CLASS_STREAM:
        if (record->api == API_cudaStreamDestroy)
            inflight_forget_stream(&hazards->inflight, record->stream);
        return 0;
    case CLASS_MEMORY:
        /* How far an opened IPC handle reaches is not known. */
        if (!record->memory.bytes || __builtin_add_overflow(pointer, record->memory.bytes, &end))
            end = UINT64_MAX;
        inflight_forget_memory(&hazards->inflight, pointer, end);
        return 0;
    default:
        return 0;
    }
}

static int setup(struct analyzer *analyzer, struct process *process, const struct record *record, struct member *member)
{
    (void)analyzer;
    (void)member;
    bool ends = record->api == API_ncclCommFinalize || record->api == API_ncclCommDestroy ||
                record->api == API_ncclCommAbort || record->api == API_ncclCommRevoke;
    if (ends && process->hazards)
        inflight_forget_comm(&process->hazards->inflight, record->comm.comm);
    return 0;
}

static int lost(struct analyzer *analyzer, struct process *process)
{
    (void)analyzer;
    if (!process->hazards && !(process->hazards = calloc(1, sizeof *process->hazards)))
        return -1;
    process->hazards->off = true;
    drop_untold(process->hazards);
    inflight_clear(&process->hazards->inflight);
    return 0;
}

static int tell(struct analyzer *analyzer, struct write_site *site)
{
    uint64_t times = site->untold;
    site->untold = 0;
    if (site->holds_draft) {
        site->holds_draft = false;
        site->told = true;
        if (findings_report(analyzer, &site->draft, &site->finding))
            return -1;
        times--;
    }
    for (; times && site->finding; times--)
        findings_count(analyzer, site->finding, site->last_ns);
    return 0;
}

static int waits(struct analyzer *analyzer, struct wait_graph *graph)
{
    (void)graph;
    for (int i = 0; i < analyzer->processes; i++) {
        struct hazards *hazards = analyzer->process[i] ? analyzer->process[i]->hazards : NULL;
        if (!hazards || !hazards->has_untold)
            continue;
        hazards->has_untold = false;
        for (uint32_t k = 0; k < hazards->sites; k++)
            if (tell(analyzer, &hazards->site[k]))
                return -1;
    }
    return 0;
}

const struct check_group checks_writes = {
    .name = "writes", .operation = operation, .setup = setup, .launch = launch, .call = call, .lost = lost, .waits = waits,
};
