/* different_operations.c: DC101 to DC106: members of a communicator make different calls at one
 * place of its sequence.
 *
 * One finding for each communicator: the first place where they part. What comes after is a
 * consequence, and only counted. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/checks/match/different_counts.h"
#include "analyzer/model/comm.h"
#include "analyzer/match/divergence.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"

enum { BUFFER_ELEMENTS = 16 }; /* and more are a buffer rather than a flag or a barrier */

/* In order of priority: the first that differs gives the code. */
static const struct field_rule {
    unsigned fields;
    const struct check *check;
    const char *name;
    enum advice advice;
} field_rules[] = {
    {FIELD_GROUP, &check_different_groups, "the calls of its group", ADVICE_SAME_GROUP},
    {FIELD_KIND, &check_different_operations, "the operation", ADVICE_SAME_OPERATIONS},
    {FIELD_DATATYPE, &check_different_datatypes, "the datatype", ADVICE_SAME_DATATYPE},
    {FIELD_COUNT, &check_different_counts, "the count", ADVICE_SAME_COUNT},
    {FIELD_REDOP, &check_different_operators, "the reduction operator", ADVICE_SAME_OPERATOR},
    {FIELD_ROOT, &check_different_roots, "the root", ADVICE_SAME_ROOT},
};
enum { FIELD_RULES = sizeof field_rules / sizeof *field_rules };

static const struct field_rule barrier_rule = {0, &check_different_operations, "",
                                               ADVICE_BARRIER_AND_BUFFER};
static const struct field_rule other_comm_rule = {0, &check_different_operations, "",
                                                  ADVICE_SAME_COMM};

static unsigned variant_count(struct slot *slot, uint32_t i)
{
    return (unsigned)rankset_count(&slot_variant(slot, i)->ranks);
}

/* Order of the sides: most ranks first, then the lowest rank. */
static void sort_variants(struct slot *slot, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = i;
        for (; place; place--) {
            uint32_t above = order[place - 1];
            unsigned mine = variant_count(slot, i), theirs = variant_count(slot, above);
            bool before = mine > theirs || (mine == theirs &&
                                            rankset_next(&slot_variant(slot, i)->ranks, 0) <
                                                rankset_next(&slot_variant(slot, above)->ranks, 0));
            if (!before)
                break;
            order[place] = above;
        }
        order[place] = i;
    }
}

static struct act variant_act(const struct signature *signature, bool with_group)
{
    struct act act = {.did = DID_CALLED, .call = signature_call(signature)};
    if (with_group && signature->group_size) {
        act.did = DID_CALLED_IN_GROUP;
        act.value = (int32_t)signature->group_index + 1;
        act.number = signature->group_size;
    }
    return act;
}

static void add_variant_side(struct draft *draft, const struct comm *comm,
                             const struct variant *variant, bool with_group)
{
    const struct act act = variant_act(&variant->signature, with_group);
    struct finding_side *side = draft_side(draft, &act, &variant->site);
    if (!side) { /* the last side stands for all the rest */
        side = &draft->finding.side[FINDING_SIDES_MAX - 1];
        draft_side_act(draft, side, &(struct act){.did = DID_CALLED_OTHERS});
    }
    for (uint32_t i = 0; i < comm->members; i++)
        if (rankset_has(&variant->ranks, comm->member[i]->rank))
            draft_rank(draft, side, comm->member[i]);
    if (!draft->finding.first_ns || variant->site.time_ns < draft->finding.first_ns)
        draft->finding.first_ns = variant->site.time_ns;
    if (variant->site.time_ns > draft->finding.last_ns)
        draft->finding.last_ns = variant->site.time_ns;
}

static void match_describe(struct draft *draft, const struct comm *comm, unsigned fields,
                           const struct field_rule *rule)
{
    struct values values = {.flag = {rule == &barrier_rule}};
    int names = 0;
    enum advice advice = rule->advice;
    for (int i = 0; i < FIELD_RULES; i++)
        if (fields & field_rules[i].fields)
            values.name[names++] = field_rules[i].name;
    for (int i = 1; i < draft->finding.sides; i++) {
        values.each[i] = comm->slot.divergence->shift[i];
        if (values.each[i])
            advice = ADVICE_SAME_OPERATIONS; /* its arguments are right, and it is too early */
    }
    draft_headline(draft, HEADLINE_DIFFERENT_OPERATIONS, advice, &values);
}

/* One of two sides made its call where the other made it on another communicator: found once, as
 * what the ranks do afterwards hides it. */
static bool find_intended(struct comm *comm, const uint32_t *order)
{
    struct divergence *divergence = comm->slot.divergence;
    struct slot *slot = &divergence->slot[0];
    for (int first = 0; first < 2 && !divergence->intended.comm && slot->variants == 2; first++) {
        divergence->of_first = first;
        other_comm_intended(comm, divergence->number, slot_variant(slot, order[!first]),
                            slot_variant(slot, order[first]), &divergence->intended);
    }
    return divergence->intended.comm && slot->variants == 2;
}

static struct act call_on(const struct comm *comm, const struct signature *signature)
{
    struct act act = {.did = DID_CALLED_ON,
                      .call = signature_call(signature),
                      .wait = {.kind = AWAITED_COMM, .comm = comm->id}};
    comm_title(comm, act.wait.title);
    return act;
}

/* Both sides with the communicator that they made the call on. */
static void describe_intended(struct draft *draft, const struct comm *comm)
{
    const struct divergence *divergence = comm->slot.divergence;
    const struct other_call *intended = &divergence->intended;
    int odd = divergence->of_first ? 0 : 1;
    struct finding_side *side = draft->finding.side;
    const struct act wrong = call_on(comm, &intended->signature),
                     right = call_on(intended->comm, &intended->signature);
    draft_side_act(draft, &side[odd], &wrong);
    draft_side_act(draft, &side[!odd], &right);
    draft_side_at(draft, &side[!odd], &intended->site);
    char title[COMM_TITLE_BYTES];
    const struct values values = {
        .name = {comm_title(intended->comm, title)},
        .call = {signature_call(&intended->signature)},
        .value = {(int64_t)intended->number},
        .flag = {odd == 1},
    };
    draft_headline(draft, HEADLINE_DIFFERENT_COMMS, other_comm_rule.advice, &values);
}

static bool is_all_reduce(const struct variant *variant)
{
    return variant->signature.api == API_ncclAllReduce &&
           !(variant->signature.unknown & FIELD_COUNT);
}

/* An AllReduce of one element, as PyTorch's barrier, meets one of a buffer: the ranks are at
 * different calls of their programs, whatever else the two have in common. */
static bool is_barrier_against_buffer(struct slot *slot)
{
    bool barrier = false, buffer = false;
    for (uint32_t i = 0; i < slot->variants; i++) {
        const struct variant *variant = slot_variant(slot, i);
        if (!is_all_reduce(variant))
            return false;
        barrier |= variant->signature.count == 1;
        buffer |= variant->signature.count >= BUFFER_ELEMENTS;
    }
    return barrier && buffer;
}

static const struct field_rule *match_rule(struct slot *slot, unsigned fields)
{
    if (!(fields & (FIELD_GROUP | FIELD_KIND)) && is_barrier_against_buffer(slot))
        return &barrier_rule;
    for (int i = 0; i < FIELD_RULES; i++)
        if (fields & field_rules[i].fields)
            return &field_rules[i];
    return field_rules;
}

/* How each side's sequence is shifted against that of the most. */
static void find_shifts(const struct comm *comm, const uint32_t *order)
{
    struct divergence *divergence = comm->slot.divergence;
    struct slot *slot = &divergence->slot[0];
    int most = rankset_next(&slot_variant(slot, order[0])->ranks, 0);
    for (uint32_t i = 1; i < slot->variants && i < FINDING_SIDES_MAX; i++)
        divergence->shift[i] =
            divergence_shift(comm, rankset_next(&slot_variant(slot, order[i])->ranks, 0), most);
}

/* The finding about where the communicator's members part, as far as it is known now. */
static void match_report(struct analyzer *analyzer, struct comm *comm)
{
    struct divergence *divergence = comm->slot.divergence;
    struct slot *slot = &divergence->slot[0];
    uint32_t *order = slot->variants ? malloc(slot->variants * sizeof *order) : NULL;
    if (!order) {
        if (slot->variants)
            analyzer->failed = true;
        return;
    }
    divergence->reported = slot->passed;
    divergence->stale = false;
    sort_variants(slot, order, slot->variants);
    const struct variant *most = slot_variant(slot, order[0]);
    unsigned fields = 0;
    for (uint32_t i = 1; i < slot->variants; i++)
        fields |= signature_differs(&most->signature, &slot_variant(slot, order[i])->signature);
    const struct field_rule *rule = match_rule(slot, fields);
    if (empty_report(analyzer, comm, divergence->number, most, &divergence->finding)) {
        free(order);
        return;
    }
    find_shifts(comm, order);
    bool on_other_comm = find_intended(comm, order);
    if (on_other_comm)
        rule = &other_comm_rule;
    struct draft draft = draft_new(rule->check, comm_lost(comm) ? POSSIBLE : CERTAIN, comm);
    draft.finding.number = divergence->number;
    draft.finding.has_number = true;
    for (uint32_t i = 0; i < slot->variants; i++)
        add_variant_side(&draft, comm, slot_variant(slot, order[i]), fields & FIELD_GROUP);
    free(order);
    draft_cover_comm(&draft, comm);
    if (on_other_comm)
        describe_intended(&draft, comm);
    else
        match_describe(&draft, comm, fields, rule);
    if (divergence->finding) {
        findings_replace(analyzer, divergence->finding, &draft);
        return;
    }
    findings_report(analyzer, &draft, &divergence->finding);
}

static void match_follow(struct analyzer *analyzer, struct comm *comm, uint64_t number,
                         const struct member *member)
{
    struct divergence *divergence = comm->slot.divergence;
    if (!divergence->finding || number < divergence->number ||
        number > divergence->number + LOOK_AHEAD)
        return;
    struct slot *slot = &divergence->slot[0];
    uint32_t variants = slot->variants;
    if (divergence_follow(comm, number, member)) {
        analyzer->failed = true;
        return;
    }
    if (number == divergence->number) {
        divergence->stale = true;
        if (slot->variants != variants || divergence_is_due(comm, divergence->reported))
            match_report(analyzer, comm);
        return;
    }
    uint32_t *order = slot->variants ? malloc(slot->variants * sizeof *order) : NULL;
    int before[FINDING_SIDES_MAX];
    if (!order) {
        if (slot->variants)
            analyzer->failed = true;
        return;
    }
    sort_variants(slot, order, slot->variants);
    memcpy(before, divergence->shift, sizeof before);
    find_shifts(comm, order);
    free(order);
    if (memcmp(before, divergence->shift, sizeof before))
        match_report(analyzer, comm);
}

static void report_block(struct analyzer *analyzer, const struct operation *operation)
{
    struct comm *comm = operation->member->comm;
    struct draft draft = draft_new(&check_different_operations, POSSIBLE, comm);
    struct finding_side *side =
        draft_side_signature(&draft, &operation->signature, &operation->site);
    draft_rank(&draft, side, operation->member);
    draft_cover_comm(&draft, comm);
    draft.finding.number = operation->match->block_first;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = operation->site.time_ns;
    const struct values values = {.value = {(int64_t)operation->record.op.number}};
    draft_headline(&draft, HEADLINE_SUMMARY_DIFFERS, ADVICE_SAME_OPERATIONS, &values);
    findings_report(analyzer, &draft, NULL);
}

static void match_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct comm *comm = operation->member->comm;
    const struct window_answer *match = operation->match;
    uint64_t number = operation->record.op.number;
    if (match->result == WINDOW_BLOCK_DIFFERS) {
        report_block(analyzer, operation);
        return;
    }
    bool first = match->result == WINDOW_DIFFERS &&
                 (!comm->slot.divergence || number < comm->slot.divergence->number);
    if (first) {
        /* Members that part earlier than the ones known so far take the finding over. */
        if (comm->slot.divergence && comm->slot.divergence->finding)
            findings_count(analyzer, comm->slot.divergence->finding, operation->site.time_ns);
        if (divergence_begin(comm, number)) {
            analyzer->failed = true;
            return;
        }
        match_report(analyzer, comm);
        return;
    }
    if (!comm->slot.divergence)
        return;
    if (match->fresh && comm->slot.divergence->finding)
        findings_count(analyzer, comm->slot.divergence->finding, operation->site.time_ns);
    match_follow(analyzer, comm, number, operation->member);
}

/* Ranks that came since the finding was made last. */
static void match_refresh(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    struct comm *comm;
    for (uint32_t n = 0; (comm = comm_watched(analyzer, n)); n++)
        if (comm->slot.divergence && comm->slot.divergence->stale)
            match_report(analyzer, comm);
}

const struct check check_different_operations = {
    .code = DC101,
    .name = "different-operations",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_CALLS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_DIVERGED),
    .title = "ranks call different collectives at the same position",
    .text = "The operations of a communicator form one sequence: NCCL matches the n-th call of "
            "each rank with the n-th call of every other rank. Here the n-th calls differ: they "
            "are different operations, or AllReduces of which one has a single element (a PyTorch "
            "barrier, a flag) and another a whole buffer.\n\n"
            "It shows as a hang, or as wrong results without any error: NCCL does not compare the "
            "ranks' calls.\n\n"
            "Where one side's call is the one that the other made just before on another "
            "communicator, and only there, the finding shows both communicators: one side passed "
            "the wrong one, or skipped a call on each.\n\n"
            "It is certain unless records were lost (DC901): then it is only possible.",
    .causes = CAUSES(
        {"A branch on the rank or on local data around a collective: save, evaluation, FSDP's "
         "state_dict or a DDP forward under `if rank == 0`, a metric that only some ranks reduce.",
         "Compare the source lines of the two sides: the condition is between the last operation "
         "that both issued and these lines.",
         {.waiting = SIGN_RANK_0_WORK}},
        {"An exception that is caught on one rank (out of memory, a bad batch): the rank skips the "
         "rest of its step and goes on.",
         "That rank's log has a warning or a traceback, and it is one iteration ahead of the "
         "others."},
        {"A break, early stopping or a `.item()` test on a value that was not reduced first.",
         "The value differs between ranks: print it on every rank."},
        {"Parameters without a gradient on one rank (find_unused_parameters is off, or a branch in "
         "forward).",
         "The sides are DDP buckets of different sizes; TORCH_DISTRIBUTED_DEBUG=DETAIL names the "
         "parameters."},
        {"SyncBatchNorm in eval() on some ranks, or torch.compile that recompiles on one rank and "
         "reorders its collectives.",
         "One side is the AllGather or AllReduce of a normalization layer, or "
         "TORCH_LOGS=recompiles shows a line on one rank only.",
         {.waiting = "SyncBatchNorm|sync_batch_norm"}},
        {"The wrong communicator: a group looked up by rank, or a variable that is set on some "
         "ranks only.",
         "The finding shows one call on two communicators.",
         {.did = SIGN_DID(DID_CALLED_ON)}},
        {"Two threads that issue on one communicator without a lock.",
         "The two calls come from different threads, and the next run pairs other calls."}),
    .source =
        "NCCL 2.29 user guide, \"Collective Operations\": every rank has to make the same call",
    .example = "if (rank == 0)\n    ncclBroadcast(x, x, n, ncclFloat, 0, comm, stream);\nelse\n    "
               "ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);   /* the same call on "
             "every rank */\n",
    .fix_torch =
        "dist.all_reduce(x)    # outside of any `if` that depends on the rank or on the data\n",
    .on = {[EVENT_OPERATION] = match_on_operation,
           [EVENT_REFUSED] = match_on_operation,
           [EVENT_WAITS] = match_refresh,
           [EVENT_FINISH] = match_refresh},
};
