/* dc506_steps.c: DC506, and what else shows when an iteration is over: DC505 (every micro-step
 * reduces) and DC603 (communication waits for the end of backward). All of it needs NVTX ranges: of
 * iterations, of the optimizer's steps, of backward. Reported when the iteration's range ends. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "analyzer/states.h"
#include "analyzer/loop/vote_rounds.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

/* When it is worth a word. */
enum {
    EVERY_ITERATIONS = 2, /* in a row: an iteration that is different once is none */
    EVERY_BACKWARDS =
        3, /* without named micro-steps: two backward passes are what a GAN's discriminator does */
    OVERLAP_ITERATIONS = 3,
    OVERLAP_BYTES = 4 << 20, /* per iteration: less is through in a fraction of a millisecond */
    OVERLAP_REDUCTIONS = 2,  /* one bucket can't begin before backward is over */
    RANKS_BYTES = 128
};

static bool step_is_reduction(unsigned api)
{
    return kind_has(api, KIND_REDUCES) && !kind_has(api, KIND_ROOTED);
}

/* --- while the iteration goes on
 * ---------------------------------------------------------------------------------- */

/* What a member reduced in one iteration. */
struct tally {
    uint64_t iteration;
    const struct thread *owner;      /* loop_place.owner */
    uint32_t reductions, overlapped; /* overlapped: while backward ran */
    uint64_t bytes;
    struct site site;          /* of the last */
    uint32_t micro;            /* the last micro-step that reduced */
    uint64_t set, first_set;   /* hash of what it reduced, and of what the first one did */
    uint32_t sets, other_sets; /* micro-steps that reduced; those of them that reduced something
                                  else than the first */
    uint32_t waits; /* iterations in a row in which nothing overlapped although it could */
    uint32_t every; /* iterations in a row in which every micro-step reduced the same */
};

static void close_set(struct tally *tally)
{
    if (!tally->sets)
        return;
    if (tally->sets == 1)
        tally->first_set = tally->set;
    else if (tally->set != tally->first_set)
        tally->other_sets++;
}

static void steps_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    const struct record *record = &operation->record;
    const struct loop_place *loop = &operation->loop;
    if (!loop->iteration || !step_is_reduction(record->api))
        return;
    struct tally *tally =
        state_get(analyzer, &check_skipped_step, OWNER_MEMBER, &operation->member->states);
    if (!tally)
        return;
    if (tally->iteration != loop->iteration) {
        uint32_t waits = tally->waits, every = tally->every;
        *tally = (struct tally){
            .iteration = loop->iteration, .owner = loop->owner, .waits = waits, .every = every};
    }
    if (!tally->sets || tally->micro != loop->micro) {
        close_set(tally);
        tally->sets++;
        tally->set = 0;
        tally->micro = loop->micro;
    }
    tally->set += signature_hash(&operation->signature);
    tally->reductions++;
    tally->site = operation->site;
    tally->overlapped += loop->in_backward;
    tally->bytes += record->op.count * datatype_bytes(record->op.datatype);
}

static void vote_rounds_end(void *state)
{
    vote_rounds_clear(state);
}

/* --- DC506 ------------------------------------------------------------------------------ */

static struct act optimizer_step_act(const struct vote_round_side *side, const char *name)
{
    if (side->count <= 1)
        return (struct act){.did = side->count ? DID_ONE_STEP : DID_NO_STEP, .name = name};
    return (struct act){.did = DID_STEPS, .number = side->count, .name = name};
}

static void report_steps(struct analyzer *analyzer, const struct comm *comm,
                         struct vote_round *vote_round, const struct vote *vote)
{
    const struct process *process = vote->member->process;
    const char *name = process_string(process, vote_round->text);
    struct draft draft = draft_new(&check_skipped_step, POSSIBLE, comm);
    struct text what = {0};
    char ranks[RANKS_BYTES], id[16];
    for (int i = 0; i < vote_round->sides; i++) {
        const struct vote_round_side *from = &vote_round->side[i];
        const struct act act = optimizer_step_act(from, *name ? name : "step");
        struct finding_side *side = draft_side(&draft, &act, &from->site);
        for (uint32_t k = 0; k < comm->members; k++)
            if (rankset_has(&from->ranks, comm->member[k]->rank))
                draft_rank(&draft, side, comm->member[k]);
        text_add(&what, "%s%s %s made ", i ? ", " : "",
                 rankset_count(&side->ranks) == 1 ? "rank" : "ranks",
                 rankset_text(&side->ranks, ranks, sizeof ranks));
        act_add(&what, &act);
        if (!draft.finding.first_ns || from->site.time_ns < draft.finding.first_ns)
            draft.finding.first_ns = from->site.time_ns;
        if (from->site.time_ns > draft.finding.last_ns)
            draft.finding.last_ns = from->site.time_ns;
    }
    text_add(&what,
             " in iteration %" PRIu64
             ", though all had reduced the gradients on %s: from here on their parameters differ",
             vote_round->key, comm_name(comm->id, id));
    draft_cover_comm(&draft, comm);
    draft_say(&draft, &what,
              "Let all ranks decide together: reduce the overflow flag (MAX) before the step, as "
              "GradScaler does on reduced gradients.");
    if (vote_round->finding) {
        findings_replace(analyzer, vote_round->finding, &draft);
        return;
    }
    findings_report(analyzer, &draft, &vote_round->finding);
}

/* Of its last step; without one, where it reduced last: there the step should follow. */
static struct site step_site(struct thread *thread, const struct loop_steps *steps,
                             const struct tally *tally)
{
    if (!steps->count)
        return tally->site;
    return (struct site){
        .process = thread->process,
        .phase = steps->text,
        .stack = steps->stack,
        .stack_is_address = steps->stack_is_address,
        .time_ns = steps->time_ns,
    };
}

/* Only optimizers that this rank has stepped before: ranks may well have optimizers of their own.
 */
static void compare_steps(struct analyzer *analyzer, struct thread *thread, struct member *member,
                          const struct tally *tally)
{
    const struct loop *loop = &thread->loop;
    bool numbered = loop->has_iterations && loop->range.meaning.has_number;
    for (uint32_t i = 0; i < loop->steps_count && loop->has_iterations; i++) {
        struct vote vote = {
            .member = member,
            .numbered = numbered,
            .key = numbered ? loop->range.meaning.number : member->laps,
            .model = loop->steps[i].model,
            .text = loop->steps[i].text,
            .backwards = loop->backwards,
            .count = loop->steps[i].count,
            .site = step_site(thread, &loop->steps[i], tally),
        };
        struct vote_rounds *vote_rounds =
            state_get(analyzer, &check_skipped_step, OWNER_COMM, &member->comm->states);
        struct vote_round *vote_round =
            vote_rounds ? vote_rounds_enter(vote_rounds, member->comm, &vote) : NULL;
        if (vote_rounds && !vote_round && errno == ENOMEM) {
            analyzer->failed = true;
            return;
        }
        if (vote_round && vote_round->sides > 1)
            report_steps(analyzer, member->comm, vote_round, &vote);
    }
}

/* --- DC505, DC603: what one rank does in every iteration
 * ------------------------------------------------------------- */

static void report_habit(struct analyzer *analyzer, const struct check *check, enum did did,
                         const struct member *member, const struct tally *tally, struct text *what,
                         const char *todo)
{
    struct draft draft = draft_new(check, POSSIBLE, member->comm);
    draft_rank(&draft, draft_side(&draft, &(struct act){.did = did}, &tally->site), member);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = tally->site.time_ns;
    draft_say(&draft, what, todo);
    findings_report(analyzer, &draft, NULL);
}

static uint32_t all_steps(const struct loop *loop)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < loop->steps_count; i++)
        count += loop->steps[i].count;
    return count;
}

static void check_every(struct analyzer *analyzer, const struct thread *thread,
                        const struct member *member, struct tally *tally)
{
    const struct loop *loop = &thread->loop;
    uint32_t micro_steps = loop->micro_steps ? loop->micro_steps : loop->backwards;
    bool is_named = loop->micro_steps >= 2 || loop->backwards >= EVERY_BACKWARDS;
    bool every = is_named && tally->sets == micro_steps && tally->sets >= 2 && !tally->other_sets &&
                 all_steps(loop) == 1;
    tally->every = every ? tally->every + 1 : 0;
    if (tally->every < EVERY_ITERATIONS)
        return;
    struct text what = {0};
    char name[16];
    text_add(&what,
             "all %" PRIu32 " micro-steps of an iteration reduce the same gradients on %s, but the "
             "optimizer steps once: one reduction, "
             "after the last, would do",
             tally->sets, comm_name(member->comm->id, name));
    report_habit(analyzer, &check_different_micro_steps, DID_REDUCES_OFTEN, member, tally, &what,
                 "Accumulate locally and reduce in the last micro-step only (PyTorch: "
                 "no_sync() in all but the last).");
}

static void check_overlap(struct analyzer *analyzer, const struct thread *thread,
                          const struct member *member, struct tally *tally)
{
    const struct loop *loop = &thread->loop;
    bool could = loop->backwards && tally->reductions >= OVERLAP_REDUCTIONS &&
                 tally->bytes >= OVERLAP_BYTES && all_steps(loop);
    tally->waits = could && !tally->overlapped ? tally->waits + 1 : 0;
    if (tally->waits < OVERLAP_ITERATIONS)
        return;
    struct text what = {0};
    char name[16];
    text_add(&what,
             "the %" PRIu32
             " reductions of an iteration on %s (%.1f MiB) all begin after backward is over",
             tally->reductions, comm_name(member->comm->id, name),
             (double)tally->bytes / (1 << 20));
    report_habit(analyzer, &check_no_overlap, DID_REDUCES_LATE, member, tally, &what,
                 "Reduce a bucket as soon as its gradients are there, while backward goes "
                 "on (DistributedDataParallel's hooks do).");
}

static void steps_on_iteration(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    if (thread->process->lost_bulk)
        return;
    for (struct member *member = thread->process->members; member; member = member->process_next) {
        struct tally *tally =
            state_find(analyzer, &check_skipped_step, OWNER_MEMBER, member->states);
        if (!tally || tally->owner != thread || tally->iteration != thread->loop.ordinal)
            continue;
        close_set(tally);
        compare_steps(analyzer, thread, member, tally);
        check_every(analyzer, thread, member, tally);
        check_overlap(analyzer, thread, member, tally);
        tally->iteration = 0;
    }
}

const struct check check_skipped_step = {
    .code = DC506,
    .name = "skipped-step",
    .family = FAMILY_TRAINING,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .needs = LACKS_MARKS,
    /* on several communicators: one finding */
    .explains_later = CODES(CODES_LOOPS, DC503),
    .title = "some ranks skipped a step of the optimizer",
    .text =
        "All ranks reduced their gradients in an iteration, but some then made no step of an "
        "optimizer that they and the others have stepped before. From then on their parameters "
        "differ, and every later gradient is computed on different models.\n\n"
        "It shows as a loss that differs between ranks and as training that slowly gets worse. The "
        "usual cause is mixed precision with an overflow that only one rank detects: gradients "
        "checked before the reduction, a scale kept per rank, a step skipped because of a local "
        "NaN.\n\n"
        "Steps and iterations come from NVTX ranges, so it is possible, never certain: a rank that "
        "steps without its range is named wrongly. It is not reported for ranks that made another "
        "number of backward passes in that iteration (they only join the others' collectives), for "
        "optimizers that a rank has never stepped, and if records were lost (DC901).",
    .example =
        "if (!overflow_here)          /* another answer on each rank */\n    step(optimizer);\n",
    .fix_c = "ncclAllReduce(&overflow_here, &overflow, 1, ncclInt32, ncclMax, comm, stream);\nif "
             "(!overflow)\n    step(optimizer);\n",
    .fix_torch = "scaler.unscale_(optimizer)      # after the reduction: all ranks see the same "
                 "inf or NaN\nscaler.step(optimizer)\nscaler.update()\n",
    .on = {[EVENT_OPERATION] = steps_on_operation, [EVENT_ITERATION] = steps_on_iteration},
    .state_bytes =
        {[OWNER_MEMBER] = sizeof(struct tally), [OWNER_COMM] = sizeof(struct vote_rounds)},
    .state_end = {[OWNER_COMM] = vote_rounds_end},
};

const struct check check_no_overlap = {
    .code = DC603,
    .name = "no-overlap",
    .family = FAMILY_SPEED,
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_TIMING,
    .title = "communication does not overlap with backward although it could",
    .text =
        "In three iterations in a row all reductions were issued after the backward pass was done, "
        "though there are several and they are large (4 MiB together or more). The first of them "
        "could have run during backward.\n\n"
        "It shows as lost time only. Usual causes: gradients reduced by hand after "
        "loss.backward(), one bucket for everything, a hook that waits for the last gradient.\n\n"
        "Backward passes come from NVTX ranges, so the program must have some. If the reductions "
        "depend on all gradients (clipping by the global norm before them), nothing can be gained.",
    .example = "backward(loss);\nfor (int b = 0; b < buckets; b++)\n    ncclAllReduce(bucket[b], "
               "bucket[b], count[b], ncclFloat, ncclAvg, comm, communication);\n",
    .fix_c = "/* in the hook of the last gradient of bucket b, while backward goes on: "
             "*/\ncudaEventRecord(filled[b], compute);\ncudaStreamWaitEvent(communication, "
             "filled[b], 0);\nncclAllReduce(bucket[b], bucket[b], count[b], ncclFloat, ncclAvg, "
             "comm, communication);\n",
    .fix_torch =
        "model = DistributedDataParallel(model)      # reduces each bucket as soon as it is full\n",
};
