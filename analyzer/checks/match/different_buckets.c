/* different_buckets.c: DC110: ranks reduce the same total in other pieces, or the same pieces in
 * another order.
 *
 * It explains a DC102: the counts differ because gradients were put into buckets in
 * another way. The pieces are followed from the first mismatch on, of one rank on each side, until
 * their sums meet. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/states.h"
#include "analyzer/model/comm.h"
#include "analyzer/match/divergence.h"
#include "analyzer/findings.h"
#include "analyzer/match/layout.h"
#include "analyzer/loop/loop_divergence.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

enum { TEXT_BYTES = 384, SHOWN_PIECES = 8 };

static void add_piece(struct layout *layout, int side, const struct signature *signature,
                      const struct arrival *arrival)
{
    if (layout->pieces[side] == LAYOUT_PIECES_MAX)
        return;
    struct piece *piece = &layout->piece[side][layout->pieces[side]++];
    *piece =
        (struct piece){.signature = *signature, .in_iteration = arrival && arrival->loop.iteration};
    if (piece->in_iteration)
        piece->iteration = arrival->loop.numbered ? arrival->loop.number : arrival->laps;
}

static const struct member *find_member(const struct comm *comm, int rank)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->rank == rank)
            return comm->member[i];
    return NULL;
}

/* What the one that came first has called since, from the window. Who is ahead stands with it:
 * their places are alike. */
static void add_what_is_known(struct layout *layout, const struct comm *comm)
{
    const struct member *ahead = find_member(comm, layout->rank[0]);
    for (uint64_t number = layout->number; ahead && number < ahead->next; number++) {
        struct slot *slot = window_slot(comm, number);
        int variant = slot && slot->variants > 1 ? slot_variant_of(slot, ahead->rank) : 0;
        const struct meeting *meeting = lockstep_find(comm, number);
        if (!slot || !slot->variants || variant < 0)
            return;
        add_piece(layout, 0, &slot_variant(slot, (uint32_t)variant)->signature,
                  meeting ? &meeting->first : NULL);
    }
}

static struct layout **layout_of(struct analyzer *analyzer, struct comm *comm)
{
    return state_get(analyzer, &check_different_buckets, OWNER_COMM, &comm->states);
}

static void layout_end(void *state)
{
    free(*(struct layout **)state);
}

/* NULL: there is nothing to follow, or memory is short. */
static struct layout *layout_begin(struct analyzer *analyzer, const struct comm *comm,
                                   const struct operation *operation)
{
    const struct slot *slot = &comm->slot.divergence->slot[0];
    if (slot->variants < 2)
        return NULL;
    struct layout *layout = calloc(1, sizeof *layout);
    if (!layout) {
        analyzer->failed = true;
        return NULL;
    }
    layout->number = comm->slot.divergence->number;
    layout->rank[0] = rankset_next(&slot->first.ranks, 0);
    layout->rank[1] = operation->member->rank;
    add_what_is_known(layout, comm);
    return layout;
}

/* "ncclAllReduce of 4 + 5 + 3 more float32". */
static struct act pieces_act(const struct layout *layout, int side, char *counts, size_t bytes)
{
    const struct signature *signature = &layout->piece[side][0].signature;
    struct act act = {.did = DID_CALLED_PIECES,
                      .call = {.api = signature->api, .datatype = signature->datatype},
                      .name = counts};
    uint32_t whole = layout->whole[side], shown = whole;
    size_t used = 0;
    if (whole > SHOWN_PIECES) {
        shown = SHOWN_PIECES - 1;
        act.number = whole - shown;
    }
    for (uint32_t i = 0; i < shown && used < bytes; i++)
        used += (size_t)snprintf(counts + used, bytes - used, "%s%" PRIu64, i ? " + " : "",
                                 layout->piece[side][i].signature.count);
    return act;
}

/* The side's ranks are those that parted with its rank at the first piece. */
static void layout_add_side(struct draft *draft, const struct comm *comm,
                            const struct layout *layout, int side)
{
    struct slot *slot = &comm->slot.divergence->slot[0];
    int variant = slot_variant_of(slot, layout->rank[side]);
    if (variant < 0)
        return;
    const struct variant *part = slot_variant(slot, (uint32_t)variant);
    char text[TEXT_BYTES];
    const struct act act = pieces_act(layout, side, text, sizeof text);
    struct finding_side *added = draft_side(draft, &act, &part->site);
    for (uint32_t i = 0; i < comm->members; i++)
        if (rankset_has(&part->ranks, comm->member[i]->rank))
            draft_rank(draft, added, comm->member[i]);
    if (!draft->finding.first_ns || part->site.time_ns < draft->finding.first_ns)
        draft->finding.first_ns = part->site.time_ns;
    if (part->site.time_ns > draft->finding.last_ns)
        draft->finding.last_ns = part->site.time_ns;
}

static void layout_report(struct analyzer *analyzer, const struct comm *comm, struct layout *layout)
{
    struct slot *slot = &comm->slot.divergence->slot[0];
    layout->reported = slot->passed;
    layout->stale = false;
    int a = slot_variant_of(slot, layout->rank[0]), b = slot_variant_of(slot, layout->rank[1]);
    bool swap = a >= 0 && b >= 0 &&
                rankset_count(&slot_variant(slot, (uint32_t)b)->ranks) >
                    rankset_count(&slot_variant(slot, (uint32_t)a)->ranks);
    struct draft draft =
        draft_new(&check_different_buckets, comm_lost(comm) ? POSSIBLE : CERTAIN, comm);
    draft.finding.number = layout->number;
    draft.finding.has_number = true;
    layout_add_side(&draft, comm, layout, swap);
    layout_add_side(&draft, comm, layout, !swap);
    draft_cover_comm(&draft, comm);
    const struct values values = {.flag = {layout->other_order}};
    draft_headline(&draft, HEADLINE_DIFFERENT_BUCKETS,
                   layout->other_order ? ADVICE_CALLS_IN_ONE_ORDER : ADVICE_DIFFERENT_BUCKETS,
                   &values);
    if (layout->finding) {
        findings_replace(analyzer, layout->finding, &draft);
        return;
    }
    findings_report(analyzer, &draft, &layout->finding);
}

/* Groups in another order, other kinds or types have codes of their own. A bucket of one element
 * may look like a barrier (DC101). */
static bool is_about_counts(const struct analyzer *analyzer, struct divergence *divergence)
{
    struct slot *slot = &divergence->slot[0];
    const struct reported *reported = findings_of(analyzer, divergence->finding);
    if (!reported)
        return false;
    enum code code = reported->check->code;
    for (uint32_t i = 1; code == DC101 && i < slot->variants; i++)
        if (signature_differs(&slot->first.signature, &slot_variant(slot, i)->signature) !=
            FIELD_COUNT)
            return false;
    return code == DC102 || code == DC101;
}

static void judge(struct analyzer *analyzer, const struct comm *comm, struct layout *layout,
                  bool is_all)
{
    if (!is_about_counts(analyzer, comm->slot.divergence))
        return;
    enum layout_answer answer = layout_judge(layout, is_all);
    layout->other_order = answer == LAYOUT_OTHER_ORDER;
    if (answer == LAYOUT_OTHER_PIECES || answer == LAYOUT_OTHER_ORDER)
        layout_report(analyzer, comm, layout);
}

static void layout_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct comm *comm = operation->member->comm;
    struct divergence *divergence = comm->slot.divergence;
    uint64_t number = operation->record.op.number;
    if (!divergence || !divergence->finding || comm->slot.loop_divergence ||
        api_class_of(operation->record.api) != CLASS_COLLECTIVE)
        return;
    struct layout **kept = layout_of(analyzer, comm);
    if (kept && *kept && (*kept)->number != divergence->number) {
        free(*kept);
        *kept = NULL;
    }
    if (kept && !*kept && number == divergence->number)
        *kept = layout_begin(analyzer, comm, operation);
    struct layout *layout = kept ? *kept : NULL;
    if (!layout)
        return;
    int side = operation->member->rank == layout->rank[1] ? 1 : -1;
    if (operation->member->rank == layout->rank[0])
        side = 0;
    bool is_next = side >= 0 && number == layout->number + layout->pieces[side];
    if (layout->finding && number == layout->number) {
        layout->stale = true;
        if (divergence_is_due(comm, layout->reported))
            layout_report(analyzer, comm, layout);
        return;
    }
    if (!is_next || layout->finding)
        return;
    struct arrival arrival = {.loop = operation->loop, .laps = operation->member->laps.count};
    add_piece(layout, side, &operation->signature, &arrival);
    judge(analyzer, comm, layout, false);
}

/* Ranks that came since the finding was made last; and at the end those that hang after their first
 * buckets, which make no more calls that could prove it. */
static void layout_refresh(struct analyzer *analyzer, const struct event *event)
{
    struct comm *comm;
    for (uint32_t n = 0; (comm = comm_watched(analyzer, n)); n++) {
        struct layout **kept =
            state_find(analyzer, &check_different_buckets, OWNER_COMM, comm->states);
        struct layout *layout = kept ? *kept : NULL;
        if (!layout || !comm->slot.divergence || comm->slot.divergence->number != layout->number)
            continue;
        if (layout->stale)
            layout_report(analyzer, comm, layout);
        if (event->kind == EVENT_FINISH && !layout->finding)
            judge(analyzer, comm, layout, true);
    }
}

const struct check check_different_buckets = {
    .code = DC110,
    .name = "different-buckets",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_COUNT | LACKS_CALLS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_WHY),
    .title = "ranks bucket gradients differently",
    .text = "From one operation on, the ranks' counts differ, but their sums become equal again: "
            "the ranks reduce the same gradients in different buckets. It replaces the DC102 of "
            "the first pair of calls.\n\n"
            "It shows as a hang or as gradients that end up in the wrong parameters.\n\n"
            "It is certain that the calls differ; that they divide the same total into different "
            "buckets is concluded from sums, which could be equal by chance. If NVTX ranges name "
            "iterations, the buckets must be in the same one. Without ranges, two calls in swapped "
            "order are reported as DC102, and so is a sequence that is only shifted. It is only "
            "possible if records were lost (DC901).",
    .causes = CAUSES(
        {"Modules or parameters created in a different order on some ranks: iteration over a set "
         "or dict, a branch on the rank, a plugin that only some ranks load.",
         "Compare [n for n, _ in model.named_parameters()] of the ranks; a hash of it is enough."},
        {"A different bucket size or reducer configuration on some ranks.",
         "The sums are equal from the first iteration on; compare bucket_cap_mb and the "
         "environment."},
        {"Parameters that some ranks freeze or leave out.",
         "The total differs after all: DC102 follows on the last bucket."},
        {"Your own reducer that fills buckets in the order in which gradients arrive. PyTorch's "
         "DDP broadcasts rank 0's order after the first iteration.",
         "The first iteration is right, or the order changes from step to step."}),
    .source = "Li et al., \"PyTorch Distributed: Experiences on Accelerating Data Parallel "
              "Training\", VLDB 2020, section 3.2.3; PyTorch 2.10 documentation, \"Distributed "
              "Data Parallel\", Internal Design",
    .example = "size_t cap = rank == 0 ? 25 << 20 : 10 << 20;   /* a different bucket size */\n"
               "reduce_in_buckets(gradients, cap, comm, stream);\n",
    .fix_c = "reduce_in_buckets(gradients, 25 << 20, comm, stream);\n",
    .fix_torch = "model = build_model(config)                  # the same code on every rank, no "
                 "branch on it\n"
                 "model = DDP(model, bucket_cap_mb=25)         # the same options on every rank\n",
    .on = {[EVENT_OPERATION] = layout_on_operation,
           [EVENT_WAITS] = layout_refresh,
           [EVENT_FINISH] = layout_refresh},
    .state_bytes = {[OWNER_COMM] = sizeof(struct layout *)},
    .state_end = {[OWNER_COMM] = layout_end},
};
