/* different_operations.c: DC101 to DC106: members of a communicator make different calls at one
 * place of its sequence.
 *
 * One finding for each communicator: the first place where they part. What comes after is a
 * consequence, and only counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/checks/match/different_counts.h"
#include "analyzer/model/comm.h"
#include "analyzer/match/divergence.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"

enum {
    RANKS_BYTES = 128,
    BUFFER_ELEMENTS = 16 /* and more are a buffer rather than a flag or a barrier */
};

/* In order of priority: the first that differs gives the code. */
static const struct field_rule {
    unsigned fields;
    const struct check *check;
    const char *name, *todo;
} field_rules[] = {
    {FIELD_GROUP, &check_different_groups, "the calls of its group",
     "Make the same calls in the same order between ncclGroupStart and ncclGroupEnd on every "
     "rank."},
    {FIELD_KIND, &check_different_operations, "the operation",
     "Make every rank issue the same sequence of collectives: look for a branch, a skipped or a "
     "repeated call."},
    {FIELD_DATATYPE, &check_different_datatypes, "the datatype",
     "Use one datatype on every rank (look for mixed precision on some ranks only)."},
    {FIELD_COUNT, &check_different_counts, "the count",
     "Use the same count on every rank: check shapes, bucket sizes and the last batch."},
    {FIELD_REDOP, &check_different_operators, "the reduction operator",
     "Use the same reduction operator on every rank."},
    {FIELD_ROOT, &check_different_roots, "the root", "Give every rank the same root."},
};

static const struct field_rule barrier_rule = {
    0, &check_different_operations, "",
    "Make every rank issue the same sequence of collectives: one side calls a barrier or reduces "
    "a flag where the other reduces a buffer; look for a branch or a skipped call before it."};

static const struct field_rule other_comm_rule = {
    0, &check_different_operations, "",
    "Pass the same communicator on every rank: look at what chooses it, or for a call that one "
    "side skips."};

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

/* What the ranks did that are so many operations ahead, or behind if it is negative. */
static const char *shift_mistake(int shift)
{
    if (shift > 0)
        return shift > 1 ? "skipped calls" : "skipped a call";
    return shift < -1 ? "made calls too many" : "made a call too many";
}

/* "rank 3 is one operation ahead: its #117 is what the others call #118". */
static void say_shift(struct text *what, const struct finding *finding, int side, int shift)
{
    static const char *const counts[] = {"no", "one", "two", "three"};
    char ranks[RANKS_BYTES];
    bool one = rankset_count(&finding->side[side].ranks) == 1;
    unsigned by = (unsigned)abs(shift);
    if (!by)
        return;
    unsigned long long own = finding->number, others = finding->number;
    if (shift > 0)
        others += by;
    else
        own += by;
    text_add(what,
             "; %s %s %s %s operation%s %s: %s #%llu is what the others call #%llu (%s seem%s to "
             "have %s)",
             one ? "rank" : "ranks", rankset_text(&finding->side[side].ranks, ranks, sizeof ranks),
             one ? "is" : "are", counts[by], by > 1 ? "s" : "", shift > 0 ? "ahead" : "behind",
             one ? "its" : "their", own, others, one ? "it" : "they", one ? "s" : "",
             shift_mistake(shift));
}

static void match_describe(struct draft *draft, const struct comm *comm, unsigned fields,
                           const struct field_rule *rule)
{
    struct text what = {0};
    char ranks[RANKS_BYTES], name[COMM_TITLE_BYTES];
    for (int i = 0; i < draft->finding.sides; i++) {
        const struct finding_side *side = &draft->finding.side[i];
        bool one = rankset_count(&side->ranks) == 1;
        text_add(&what, "%s%s %s %s %s", i ? ", " : "", one ? "rank" : "ranks",
                 rankset_text(&side->ranks, ranks, sizeof ranks), one ? "calls" : "call",
                 side->call ? side->call : "?");
    }
    text_add(&what, " as operation #%llu of %s: ", (unsigned long long)draft->finding.number,
             comm_title(comm, name));
    const char *separator = "";
    for (size_t i = 0; i < sizeof field_rules / sizeof *field_rules; i++)
        if (fields & field_rules[i].fields) {
            text_add(&what, "%s%s", separator, field_rules[i].name);
            separator = ", ";
        }
    text_add(&what, " must be the same on every rank");
    if (rule == &barrier_rule)
        text_add(&what, "; one element is a barrier or a flag, many are a buffer, so the ranks are "
                        "at different calls");
    for (int i = 1; i < draft->finding.sides; i++)
        say_shift(&what, &draft->finding, i, comm->divergence->shift[i]);
    draft_say(draft, &what, rule->todo);
}

/* One of two sides made its call where the other made it on another communicator: found once, as
 * what the ranks do afterwards hides it. */
static bool find_intended(struct comm *comm, const uint32_t *order)
{
    struct divergence *divergence = comm->divergence;
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
    const struct divergence *divergence = comm->divergence;
    const struct other_call *intended = &divergence->intended;
    struct text what = {0};
    char ranks[2][RANKS_BYTES], here[COMM_TITLE_BYTES], there[COMM_TITLE_BYTES];
    int odd = divergence->of_first ? 0 : 1;
    struct finding_side *side = draft->finding.side;
    const struct act wrong = call_on(comm, &intended->signature),
                     right = call_on(intended->comm, &intended->signature);
    draft_side_act(draft, &side[odd], &wrong);
    draft_side_act(draft, &side[!odd], &right);
    draft_side_at(draft, &side[!odd], &intended->site);
    bool one = rankset_count(&side[odd].ranks) == 1,
         one_other = rankset_count(&side[!odd].ranks) == 1;
    char call[RANKS_BYTES];
    text_add(&what,
             "%s %s %s %s on %s as operation #%llu, where %s %s %s it on %s as #%llu: every "
             "rank has to pass the same communicator",
             one ? "rank" : "ranks", rankset_text(&side[odd].ranks, ranks[0], RANKS_BYTES),
             one ? "calls" : "call", signature_text(&intended->signature, call, sizeof call),
             comm_title(comm, here), (unsigned long long)draft->finding.number,
             one_other ? "rank" : "ranks", rankset_text(&side[!odd].ranks, ranks[1], RANKS_BYTES),
             one_other ? "calls" : "call", comm_title(intended->comm, there),
             (unsigned long long)intended->number);
    draft_say(draft, &what, other_comm_rule.todo);
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
    for (size_t i = 0; i < sizeof field_rules / sizeof *field_rules; i++)
        if (fields & field_rules[i].fields)
            return &field_rules[i];
    return field_rules;
}

/* How each side's sequence is shifted against that of the most. */
static void find_shifts(const struct comm *comm, const uint32_t *order)
{
    struct divergence *divergence = comm->divergence;
    struct slot *slot = &divergence->slot[0];
    int most = rankset_next(&slot_variant(slot, order[0])->ranks, 0);
    for (uint32_t i = 1; i < slot->variants && i < FINDING_SIDES_MAX; i++)
        divergence->shift[i] =
            divergence_shift(comm, rankset_next(&slot_variant(slot, order[i])->ranks, 0), most);
}

/* The finding about where the communicator's members part, as far as it is known now. */
static void match_report(struct analyzer *analyzer, struct comm *comm)
{
    struct divergence *divergence = comm->divergence;
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
    struct divergence *divergence = comm->divergence;
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
    char name[COMM_TITLE_BYTES];
    struct text what = {0};
    struct finding_side *side =
        draft_side_signature(&draft, &operation->signature, &operation->site);
    draft_rank(&draft, side, operation->member);
    draft_cover_comm(&draft, comm);
    draft.finding.number = operation->match->block_first;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = operation->site.time_ns;
    text_add(&what,
             "rank %d's calls on %s differ from the other ranks' somewhere between #%llu and #%llu "
             "(it came so late that only a summary of theirs was kept)",
             member_shown_rank(operation->member), comm_title(comm, name),
             (unsigned long long)operation->match->block_first,
             (unsigned long long)operation->record.op.number);
    draft_say(&draft, &what, field_rules[1].todo);
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
                 (!comm->divergence || number < comm->divergence->number);
    if (first) {
        /* Members that part earlier than the ones known so far take the finding over. */
        if (comm->divergence && comm->divergence->finding)
            findings_count(analyzer, comm->divergence->finding, operation->site.time_ns);
        if (divergence_begin(comm, number)) {
            analyzer->failed = true;
            return;
        }
        match_report(analyzer, comm);
        return;
    }
    if (!comm->divergence)
        return;
    if (match->fresh && comm->divergence->finding)
        findings_count(analyzer, comm->divergence->finding, operation->site.time_ns);
    match_follow(analyzer, comm, number, operation->member);
}

/* Ranks that came since the finding was made last. */
static void match_refresh(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (struct comm *comm = analyzer->first_comm; comm; comm = comm->next)
        if (comm->divergence && comm->divergence->stale)
            match_report(analyzer, comm);
}

const struct check check_different_operations = {
    .code = DC101,
    .name = "different-operations",
    .family = FAMILY_MATCH,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
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
           [EVENT_WAITS] = match_refresh,
           [EVENT_FINISH] = match_refresh},
};
