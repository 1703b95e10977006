/* different_parameters.c: DC503: buffers that the program itself says to be replicas
 * (ddpcheck_hash, interpose/ddpcheck.h) do not hold the same bytes on all ranks. One finding for
 * each communicator: the first time. */
#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

struct equality {
    uint64_t equal_before; /* the named buffers were equal before this collective */
    bool was_equal;
    uint32_t finding;
};

/* The lowest number of a collective that a rank had not issued yet when it announced the buffer. */
static uint64_t lowest_before(const struct payload *payload)
{
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < payload->cells; i++)
        if (payload->cell[i].member && payload->cell[i].before < lowest)
            lowest = payload->cell[i].before;
    return lowest == UINT64_MAX ? 0 : lowest;
}

static void parameters_add_sides(struct draft *draft, const struct payload *payload,
                                 const struct act *act, const struct payload_group *groups,
                                 int count)
{
    for (int i = 0; i < count; i++)
        draft_side(draft, act, &payload->cell[groups[i].first].site);
    for (uint32_t rank = 0; rank < payload->cells; rank++) {
        const struct payload_cell *cell = &payload->cell[rank];
        int group = payload_group_of(cell, HASH_NAMED, groups, count);
        if (group < 0)
            continue;
        draft_rank(draft, &draft->finding.side[group], cell->member);
        /* The last rank's call: hosts run ahead, so the first one's may come before what parted
         * them. */
        if (cell->site.time_ns > draft->finding.first_ns)
            draft->finding.first_ns = draft->finding.last_ns = cell->site.time_ns;
    }
}

static void parameters_on_payload(struct analyzer *analyzer, const struct event *event)
{
    const struct payload *payload = event->payload;
    struct payload_group groups[PAYLOAD_GROUPS_MAX];
    struct equality *state =
        state_get(analyzer, &check_different_parameters, OWNER_COMM, &payload->comm->states);
    if (payload->key.kind != PAYLOAD_NAMED || !state)
        return;
    int count = payload_groups(payload, HASH_NAMED, groups);
    if (count < 2) {
        if (count == 1 && payload->complete == payload->cells && !state->finding) {
            uint64_t before = lowest_before(payload);
            state->was_equal = true;
            state->equal_before = before > state->equal_before ? before : state->equal_before;
        }
        return;
    }
    uint64_t now_ns = payload->cell[groups[0].first].site.time_ns;
    if (state->finding) {
        findings_count(analyzer, state->finding, now_ns);
        return;
    }
    struct draft draft = draft_new(&check_different_parameters, CERTAIN, payload->comm);
    const struct payload_cell *cell = &payload->cell[groups[0].first];
    const struct act act = {.did = DID_HASHED,
                            .name = process_string(cell->member->process, payload->key.name),
                            .number = payload->key.number};
    parameters_add_sides(&draft, payload, &act, groups, count);
    const struct values values = {
        .value = {(int64_t)lowest_before(payload), (int64_t)state->equal_before},
        .flag = {state->was_equal},
    };
    draft_headline(&draft, HEADLINE_DIFFERENT_PARAMETERS,
                   state->was_equal ? ADVICE_PARAMETERS_CHANGED : ADVICE_PARAMETERS_NEVER_EQUAL,
                   &values);
    findings_report(analyzer, &draft, &state->finding);
}

const struct check check_different_parameters = {
    .code = DC503,
    .name = "different-parameters",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_HASHES,
    .needs = LACKS_MARKS | LACKS_PAYLOAD,
    .title = "the replicas' parameters are no longer equal",
    .text =
        "A buffer that the program announces as a replica (it calls ddpcheck_hash(name, ...) on "
        "every member of a communicator) does not contain the same bytes on all of them. The "
        "finding names the collective before which that was found, and the last one before which "
        "all were equal. Needs payload hashes (ddpcheck run --hash) and the call, which does "
        "nothing without ddpcheck (interpose/ddpcheck.h).\n\n"
        "It shows as a job that learns badly, or whose ranks give different results after "
        "training: each rank has a model of its own.\n\n"
        "The bytes are compared, so it is certain if the buffers should be bit-identical. Values "
        "that differ on purpose (batch normalization statistics that are kept per rank) must not "
        "be announced under one name, and every member must announce the same names equally often.",
    .causes = CAUSES(
        {"A step that one rank skipped (overflow or NaN seen by one rank only) or made twice.",
         "DC506 beside it, or a skipped step in that rank's log."},
        {"Parameters changed after DistributedDataParallel() was created (loading a checkpoint, "
         "weight tying, new layers): DDP broadcasts once, at creation.",
         "The difference is there from the first comparison on."},
        {"Parameters that silently get no reduction: unused in some iterations, or used through a "
         "module's parameters outside of forward.",
         "Only some names differ, and they belong to one branch."},
        {"Random initialization with a seed per rank in a job that does not broadcast.",
         "All parameters differ at the first comparison."}),
    .source = "PyTorch 2.10 documentation, \"Distributed Data Parallel\", Internal Design "
              "(parameters are broadcast when the module is created)",
    .example =
        "step(parameters, gradients, stream);            /* rank 2 skipped it: it saw an overflow "
        "*/\nddpcheck_hash(\"parameters\", parameters, n * sizeof(float), comm, stream);\n",
    .fix_c =
        "ncclAllReduce(&overflow, &overflow, 1, ncclFloat, ncclMax, comm, stream);     /* all "
        "skip, or none */\nif (!overflow)\n    step(parameters, gradients, "
        "stream);\nddpcheck_hash(\"parameters\", parameters, n * sizeof(float), comm, stream);\n",
    .fix_torch =
        "found_inf = torch.tensor(float(overflow), device=device)\ndist.all_reduce(found_inf, "
        "op=dist.ReduceOp.MAX)    # all skip, or none\nif not found_inf:\n    optimizer.step()\n",
    .on = {[EVENT_PAYLOAD] = parameters_on_payload},
    .state_bytes = {[OWNER_COMM] = sizeof(struct equality)},
};
