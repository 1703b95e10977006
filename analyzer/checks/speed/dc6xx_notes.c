/* dc6xx_notes.c: DC601 and DC602: what costs time and is no fault. (DC603 is reported with the
 * iterations, dc506_steps.c.) */
#include <inttypes.h>
#include <stdio.h>

#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/loop/lockstep.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

/* When it is worth a word. */
enum {
    /* DC601. A delay is time in which all members but one wait. Hosts' clocks are as good as NTP
     * keeps them over a network: some ten milliseconds (RFC 5905, section 1). */
    DELAY_NS = 1000000,
    DELAY_OTHER_HOST_NS = 50000000,
    DELAYS_WINDOW = 32,  /* judged together */
    DELAYS_PERCENT = 90, /* of them by one rank: chance would spread them */
    LOST_PERCENT = 10,   /* of the time */
    /* DC602. An operation of this size takes about as long as an empty one: some ten microseconds
     * of latency against one microsecond of transfer (64 KiB at 50 GB/s). PyTorch's buckets are 25
     * MiB. */
    SMALL_BYTES = 64 << 10,
    SMALL_RUN = 32,        /* one after the other, with no wait in between */
    SMALL_RUN_AGAIN = 128, /* a longer row counts again */
    SMALL_RUNS = 3,        /* once may be the set-up */
};

/* --- DC601 ------------------------------------------------------------------------------ */

/* Who came last to the operations of a communicator, in the window that is being filled. */
struct lateness {
    uint64_t begin_ns, end_ns; /* of the window; of the last time that was lost */
    uint32_t delays;
};

/* Of a member: the delays of the window in which it was the last. */
struct member_lateness {
    uint32_t delays;
    uint64_t delayed_ns;
};

/* A row of small operations that a member issued one after the other. */
struct small_run {
    uint64_t alike; /* hash of what must be equal for one operation to do */
    uint64_t bytes;
    uint32_t operations, runs;
};

static struct lateness *lateness_of(struct analyzer *analyzer, struct comm *comm)
{
    return state_get(analyzer, &check_straggler, OWNER_COMM, &comm->states);
}

static struct member_lateness *lateness_of_member(struct analyzer *analyzer, struct member *member)
{
    return state_get(analyzer, &check_straggler, OWNER_MEMBER, &member->states);
}

static struct small_run *small_run_of(struct analyzer *analyzer, struct member *member)
{
    return state_get(analyzer, &check_small_collectives, OWNER_MEMBER, &member->states);
}

static bool is_one_host(const struct comm *comm)
{
    for (uint32_t i = 1; i < comm->members; i++)
        if (comm->member[i]->process->host != comm->member[0]->process->host)
            return false;
    return true;
}

static void report_late(struct analyzer *analyzer, const struct comm *comm,
                        const struct member *member, const struct lateness *lateness,
                        const struct member_lateness *late, uint64_t elapsed_ns,
                        const struct site *site)
{
    struct draft draft = draft_new(&check_straggler, POSSIBLE, comm);
    struct text what = {0};
    char name[16];
    draft_rank(&draft, draft_side(&draft, &(struct act){.did = DID_COMES_LAST}, site), member);
    draft.finding.first_ns = lateness->begin_ns;
    draft.finding.last_ns = site->time_ns;
    text_add(&what,
             "rank %d came last to %" PRIu32 " of %" PRIu32
             " operations of %s for which the others had to wait, by %.1f ms on "
             "average: %.0f%% of the time was lost",
             member_shown_rank(member), late->delays, lateness->delays, comm_name(comm->id, name),
             (double)late->delayed_ns / late->delays / 1e6,
             100.0 * (double)late->delayed_ns / (double)elapsed_ns);
    if (!is_one_host(comm))
        text_add(&what, " (the hosts' clocks are trusted to %d ms)", DELAY_OTHER_HOST_NS / 1000000);
    draft_say(&draft, &what,
              "See what this rank does besides: its share of the data, logging, evaluation, "
              "checkpoints, its GPU's clock, its host's other load.");
    findings_report(analyzer, &draft, NULL);
}

static void begin_window(struct analyzer *analyzer, struct comm *comm, struct lateness *lateness,
                         uint64_t now_ns)
{
    lateness->begin_ns = now_ns;
    lateness->delays = 0;
    for (uint32_t i = 0; i < comm->members; i++) {
        struct member_lateness *of_member = lateness_of_member(analyzer, comm->member[i]);
        if (of_member)
            *of_member = (struct member_lateness){0};
    }
}

/* All have come. Time that was lost for an operation before is not lost again. */
static void judge_meeting(struct analyzer *analyzer, struct comm *comm,
                          const struct meeting *meeting, const struct site *site)
{
    struct lateness *lateness = lateness_of(analyzer, comm);
    struct member *late = comm->member[0];
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i] == meeting->last)
            late = comm->member[i];
    struct member_lateness *of_late = lateness_of_member(analyzer, late);
    if (!lateness || !of_late)
        return;
    uint64_t from = meeting->last_ns[1] > lateness->end_ns ? meeting->last_ns[1] : lateness->end_ns,
             to = meeting->last_ns[0];
    if (!lateness->begin_ns)
        begin_window(analyzer, comm, lateness, to);
    if (to > lateness->end_ns)
        lateness->end_ns = to;
    if (to <= from || to - from < (uint64_t)(is_one_host(comm) ? DELAY_NS : DELAY_OTHER_HOST_NS))
        return;
    lateness->delays++;
    of_late->delays++;
    of_late->delayed_ns += to - from;
    if (lateness->delays < DELAYS_WINDOW)
        return;
    uint64_t elapsed_ns = to - lateness->begin_ns;
    bool is_habit = 100 * (uint64_t)of_late->delays >=
                        DELAYS_PERCENT * (uint64_t)lateness->delays &&
                    100 * of_late->delayed_ns >= LOST_PERCENT * elapsed_ns;
    if (is_habit)
        report_late(analyzer, comm, late, lateness, of_late, elapsed_ns, site);
    begin_window(analyzer, comm, lateness, to);
}

/* --- DC602 ------------------------------------------------------------------------------ */

static bool is_small(const struct operation *operation, uint64_t bytes)
{
    const struct kind *kind = kind_find(operation->record.api);
    return kind && !(kind->flags & KIND_TO_PEER) && !kind_spans_ranks(kind) &&
           operation->signature.group_size < 2 && bytes <= SMALL_BYTES &&
           !operation->member->comm->divergence;
}

static uint64_t small_alike(const struct operation *operation)
{
    const struct signature *signature = &operation->signature;
    const uint64_t words[] = {
        signature->api,          signature->datatype,       signature->redop,
        signature->scalar,       (uint64_t)signature->root, operation->loop.iteration,
        operation->record.stream};
    return hash_bytes(HASH_START, words, sizeof words);
}

static void report_small(struct analyzer *analyzer, const struct operation *operation,
                         const struct small_run *run)
{
    struct draft draft = draft_new(&check_small_collectives, POSSIBLE, operation->member->comm);
    struct text what = {0};
    char name[16];
    const struct act act = {.did = DID_CALLED_OFTEN, .call = call_of_api(operation->record.api)};
    draft_rank(&draft, draft_side(&draft, &act, &operation->site), operation->member);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = operation->site.time_ns;
    text_add(&what,
             "%s is called %" PRIu32 " times in a row on %s for %" PRIu64
             " bytes on average, again and again: each takes as long as one "
             "for all would",
             api_name(operation->record.api), run->operations,
             comm_name(operation->member->comm->id, name), run->bytes / run->operations);
    draft_say(&draft, &what,
              "Put the tensors into one buffer (a bucket) and make one call, or put the calls into "
              "one ncclGroup.");
    findings_report(analyzer, &draft, NULL);
}

static void count_small(struct analyzer *analyzer, const struct operation *operation)
{
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

static void notes_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct comm *comm = operation->member->comm;
    if (api_class_of(operation->record.api) != CLASS_COLLECTIVE)
        return;
    count_small(analyzer, operation);

    const struct meeting *meeting = lockstep_find(comm, operation->record.op.number);
    bool complete = meeting && comm->nranks > 1 && meeting->arrivals == (uint32_t)comm->nranks &&
                    !comm->divergence;
    if (complete)
        judge_meeting(analyzer, comm, meeting, &operation->site);
}

/* The host waits: what comes after may need what came before. */
static void notes_on_call(struct analyzer *analyzer, const struct event *event)
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

const struct check check_straggler = {
    .code = DC601,
    .name = "straggler",
    .family = FAMILY_SPEED,
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .needs = LACKS_TIMING,
    .title = "one rank is a straggler",
    .text =
        "A collective starts when its last rank arrives. Here one rank (a straggler) causes nearly "
        "all of the waiting: of 32 delays in a row, it caused at least nine in ten, and they add "
        "up to a tenth of the time or more.\n\n"
        "It shows as a job that is slower than its GPUs. Usual causes: a larger share of the data; "
        "logging, evaluation or checkpoints on that rank; a slower disk; a GPU with a lower clock; "
        "another job on its host.\n\n"
        "The times are those at which each host called the operation. On one host they are exact; "
        "between hosts the clocks are trusted to 50 ms, and smaller delays are not counted. A rank "
        "whose GPU is slow is detected only if its host waits for it in each iteration.",
    .example = "if (rank == 0)\n    write_samples();             /* 50 ms in every iteration "
               "*/\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "if (rank == 0)\n    hand_samples_to_a_thread();\nncclAllReduce(x, x, n, ncclFloat, "
             "ncclSum, comm, stream);\n",
    .fix_torch =
        "if rank == 0 and step % 100 == 0:   # rarely, or in another process\n    save_samples()\n",
    .on = {[EVENT_OPERATION] = notes_on_operation, [EVENT_CALL] = notes_on_call},
    .state_bytes =
        {[OWNER_COMM] = sizeof(struct lateness), [OWNER_MEMBER] = sizeof(struct member_lateness)},
};

const struct check check_small_collectives = {
    .code = DC602,
    .name = "small-collectives",
    .family = FAMILY_SPEED,
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_TIMING,
    .title = "many small collectives instead of one",
    .text =
        "A rank makes 32 or more collectives of at most 64 KiB one after the other, of one kind, "
        "type and operator, without waiting in between, and does so repeatedly. One fused "
        "collective would take about as long as each of these: they pay the latency 32 times.\n\n"
        "It shows as lost time only. Usual causes: a reduction per parameter instead of per "
        "bucket, metrics reduced one by one.\n\n"
        "Calls within one ncclGroup are launched together and are not counted, nor is what happens "
        "once or twice (initialization). It is not known whether the values are available at the "
        "same time; a host wait in between is taken as a sign that they are not.",
    .example = "for (int p = 0; p < parameters; p++)\n    ncclAllReduce(gradient[p], gradient[p], "
               "count[p], ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "ncclGroupStart();                /* or one buffer that holds them all */\nfor (int p "
             "= 0; p < parameters; p++)\n    ncclAllReduce(gradient[p], gradient[p], count[p], "
             "ncclFloat, ncclSum, comm, stream);\nncclGroupEnd();\n",
    .fix_torch = "model = DDP(model, bucket_cap_mb=25)        # not: for p in model.parameters(): "
                 "dist.all_reduce(p.grad)\n",
    .state_bytes = {[OWNER_MEMBER] = sizeof(struct small_run)},
};
