/* small_collectives.c: DC602: many small collectives where one would do. */
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"
#include "analyzer/model/comm.h"
#include "lib/base/hash.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum {
    /* An operation of this size takes about as long as an empty one: some ten microseconds
     * of latency against one microsecond of transfer (64 KiB at 50 GB/s). PyTorch's buckets are 25
     * MiB. */
    SMALL_BYTES = 64 << 10,
    SMALL_RUN = 16,        /* one after the other, with no wait in between */
    SMALL_RUN_AGAIN = 128, /* a longer row counts again */
    SMALL_RUNS = 3,        /* once may be the set-up */
};

/* A row of small operations that a member issued one after the other. */
struct small_run {
    uint64_t alike; /* hash of what must be equal for one operation to do */
    uint64_t bytes;
    uint32_t operations, runs;
};

static struct small_run *small_run_of(struct analyzer *analyzer, struct member *member)
{
    return state_get(analyzer, &check_small_collectives, OWNER_MEMBER, &member->states);
}

static bool is_small(const struct operation *operation, uint64_t bytes)
{
    const struct kind *kind = kind_find(operation->record.api);
    return kind && !(kind->flags & KIND_TO_PEER) && !kind_spans_ranks(kind) &&
           operation->signature.group_size < 2 && bytes <= SMALL_BYTES &&
           !operation->member->comm->slot.divergence;
}

static uint64_t small_alike(const struct operation *operation)
{
    const struct signature *signature = &operation->signature;
    const uint64_t words[] = {
        signature->api,          signature->datatype,       signature->redop,
        signature->scalar,       (uint64_t)signature->root, operation->loop.iteration,
        operation->record.stream};
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = hash_word(hash, words[i]);
    return hash;
}

static void report_small(struct analyzer *analyzer, const struct operation *operation,
                         const struct small_run *run)
{
    struct draft draft = draft_new(&check_small_collectives, POSSIBLE, operation->member->comm);
    const struct act act = {.did = DID_CALLED_OFTEN, .call = call_of_api(operation->record.api)};
    draft_rank(&draft, draft_side(&draft, &act, &operation->site), operation->member);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = operation->site.time_ns;
    const struct values values = {
        .call = {act.call},
        .value = {run->operations, (int64_t)(run->bytes / run->operations)},
    };
    draft_headline(&draft, HEADLINE_SMALL_COLLECTIVES, ADVICE_SMALL_COLLECTIVES, &values);
    findings_report(analyzer, &draft, NULL);
}

static void count_small(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    if (api_class_of(operation->record.api) != CLASS_COLLECTIVE)
        return;
    struct small_run *run = small_run_of(analyzer, operation->member);
    uint64_t bytes = operation->record.op.count * datatype_bytes(operation->record.op.datatype);
    uint64_t kind = small_alike(operation);
    if (!run || operation->record.op.flags & RECORD_OP_NO_COUNT ||
        operation->record.op.datatype == TYPE_NONE)
        return;
    if (!is_small(operation, bytes)) {
        *run = (struct small_run){.runs = run->runs};
        return;
    }
    if (run->alike != kind)
        *run = (struct small_run){.alike = kind, .runs = run->runs};
    run->operations++;
    run->bytes += bytes;
    if (run->operations != SMALL_RUN && run->operations % SMALL_RUN_AGAIN)
        return;
    if (++run->runs == SMALL_RUNS)
        report_small(analyzer, operation, run);
}

/* The host waits: what comes after may need what came before. */
static void small_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (api_class_of(record->api) != CLASS_WAIT)
        return;
    for (struct member *member = thread->process->members; member; member = member->process_next) {
        struct small_run *run =
            state_find(analyzer, &check_small_collectives, OWNER_MEMBER, member->states);
        if (run)
            *run = (struct small_run){.runs = run->runs};
    }
}

const struct check check_small_collectives = {
    .code = DC602,
    .name = "small-collectives",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_TIMING,
    .title = "many small collectives instead of one",
    .text =
        "A rank makes 16 or more collectives of at most 64 KiB one after the other, of one kind, "
        "type and operator, without waiting in between, and does so repeatedly. One fused "
        "collective would take about as long as each of these: they pay the latency 16 times.\n\n"
        "It shows as lost time only.\n\n"
        "Calls within one ncclGroup are launched together and are not counted, nor is what happens "
        "once or twice (initialization). It is not known whether the values are available at the "
        "same time; a host wait in between is taken as a sign that they are not.",
    .causes = CAUSES(
        {"A reduction for each parameter instead of a bucket, in a reducer or a hook of your own.",
         "The number of calls is that of the parameters, after each backward."},
        {"Metrics that are reduced one by one.",
         "The calls have one element each and come from logging or evaluation."},
        {"Buckets that are too small (bucket_cap_mb, FSDP's wrapping of each layer).",
         "The calls are the framework's own, and of similar size."}),
    .source = "Li et al., \"PyTorch Distributed: Experiences on Accelerating Data Parallel "
              "Training\", VLDB 2020, section 2.2 (latency of small AllReduces)",
    .example = "for (int p = 0; p < parameters; p++)\n    ncclAllReduce(gradient[p], gradient[p], "
               "count[p], ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "ncclGroupStart();                /* or one buffer that holds them all */\nfor (int p "
             "= 0; p < parameters; p++)\n    ncclAllReduce(gradient[p], gradient[p], count[p], "
             "ncclFloat, ncclSum, comm, stream);\nncclGroupEnd();\n",
    .fix_torch = "model = DDP(model, bucket_cap_mb=25)        # not: for p in model.parameters(): "
                 "dist.all_reduce(p.grad)\n",
    .on = {[EVENT_OPERATION] = count_small, [EVENT_CALL] = small_on_call},
    .state_bytes = {[OWNER_MEMBER] = sizeof(struct small_run)},
};
