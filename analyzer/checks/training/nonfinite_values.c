/* nonfinite_values.c: DC502: NaN or Inf in what a rank sends: the first operation that had it, and
 * on which ranks. After a reduction all ranks have it, so the first is the one to look at; the
 * others are counted. */
#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

/* Operations like the faulty one that were finite again on all ranks before it counts as over: a
 * loss scaler skips one step, but another bucket of the same size may come in between. */
enum { FINITE_AGAIN = 8 };

struct nonfinite {
    uint32_t finding; /* that is open; 0 none */
    uint64_t first_ns;
    struct signature signature; /* of its operation */
    uint32_t finite;            /* operations like it since that were finite */
};

static struct nonfinite *nonfinite_of(struct analyzer *analyzer)
{
    return state_get(analyzer, &check_nonfinite_values, OWNER_JOB, &analyzer->states);
}

/* A sum with Inf is Inf or NaN. A maximum with -Inf is ordinary, so is a mask of it that is
 * broadcast. */
static bool spreads(const struct signature *signature)
{
    bool adds = signature->redop == REDOP_SUM || signature->redop == REDOP_PROD ||
                signature->redop == REDOP_AVG || signature->redop == REDOP_PREMULSUM;
    return adds && kind_has(signature->api, KIND_REDUCES);
}

static bool is_bad(const struct payload *payload, const struct payload_cell *cell)
{
    return cell->reported & 1 << HASH_SEND_BEFORE &&
           (cell->nans || (cell->infs && spreads(&payload->signature)));
}

/* The earliest call among the ranks that have it; NULL if none has. */
static const struct payload_cell *first_bad(const struct payload *payload)
{
    const struct payload_cell *first = NULL;
    for (uint32_t i = 0; i < payload->cells; i++)
        if (is_bad(payload, &payload->cell[i]) &&
            (!first || payload->cell[i].site.time_ns < first->site.time_ns))
            first = &payload->cell[i];
    return first;
}

static void nonfinite_add_sides(struct draft *draft, const struct payload *payload,
                                const struct payload_cell *first, uint64_t *nans, uint64_t *infs)
{
    struct finding_side *bad = draft_side_signature(draft, &payload->signature, &first->site);
    for (uint32_t i = 0; i < payload->cells; i++) {
        const struct payload_cell *cell = &payload->cell[i];
        if (!is_bad(payload, cell))
            continue;
        draft_rank(draft, bad, cell->member);
        *nans += cell->nans;
        *infs += cell->infs;
        if (cell->site.time_ns > draft->finding.last_ns)
            draft->finding.last_ns = cell->site.time_ns;
    }
    for (uint32_t i = 0; i < payload->cells; i++) {
        const struct payload_cell *cell = &payload->cell[i];
        if (!(cell->reported & 1 << HASH_SEND_BEFORE) || is_bad(payload, cell))
            continue;
        if (draft->finding.sides == 1)
            draft_side(draft, &(struct act){.did = DID_SENDS_FINITE}, &cell->site);
        draft_rank(draft, &draft->finding.side[1], cell->member);
    }
}

static void nonfinite_report(struct analyzer *analyzer, const struct payload *payload,
                             const struct payload_cell *first)
{
    struct nonfinite *state = nonfinite_of(analyzer);
    uint64_t nans = 0, infs = 0;
    struct draft draft = draft_new(&check_nonfinite_values, POSSIBLE, payload->comm);
    draft.finding.first_ns = first->site.time_ns;
    nonfinite_add_sides(&draft, payload, first, &nans, &infs);
    draft.finding.certainty = nans ? CERTAIN : POSSIBLE;
    draft.finding.number = payload->number;
    draft.finding.has_number = true;
    const struct values values = {.value = {(int64_t)nans, (int64_t)infs}};
    draft_headline(&draft, HEADLINE_NONFINITE_VALUES, ADVICE_NONFINITE_VALUES, &values);
    state->first_ns = first->site.time_ns;
    state->signature = payload->signature;
    if (state->finding) {
        findings_replace(analyzer, state->finding, &draft);
    } else {
        findings_report(analyzer, &draft, &state->finding);
    }
}

/* Another one while the first is open. */
static void another(struct analyzer *analyzer, const struct payload *payload,
                    const struct payload_cell *first)
{
    struct nonfinite *state = nonfinite_of(analyzer);
    state->finite = 0;
    if (first->site.time_ns < state->first_ns) {
        nonfinite_report(analyzer, payload, first);
        return;
    }
    findings_count(analyzer, state->finding, first->site.time_ns);
}

static bool all_reported(const struct payload *payload)
{
    for (uint32_t i = 0; i < payload->cells; i++)
        if (!(payload->cell[i].reported & 1 << HASH_SEND_BEFORE))
            return false;
    return true;
}

static void nonfinite_on_payload(struct analyzer *analyzer, const struct event *event)
{
    const struct payload *payload = event->payload;
    struct nonfinite *state = nonfinite_of(analyzer);
    if (!state)
        return;
    const struct payload_cell *first = payload->key.kind == PAYLOAD_NAMED ? NULL
                                                                          : first_bad(payload);
    if (first) {
        if (state->finding) {
            another(analyzer, payload, first);
        } else {
            nonfinite_report(analyzer, payload, first);
        }
        return;
    }
    bool like_it = state->finding && !signature_differs(&payload->signature, &state->signature) &&
                   all_reported(payload);
    if (like_it && ++state->finite == FINITE_AGAIN) {
        findings_resolve(
            analyzer, state->finding,
            "later ones are finite again: a loss scaler that skips such a step does that");
        state->finding = 0;
        state->finite = 0;
    }
}

const struct check check_nonfinite_values = {
    .code = DC502,
    .name = "nonfinite-values",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_HASHES,
    .needs = LACKS_PAYLOAD,
    .title = "NaN or Inf enters a collective",
    .text =
        "A rank passes NaN, or Inf, to an operation, and no operation before it had any. Needs "
        "payload hashes (ddpcheck run --hash), which count both in the same pass.\n\n"
        "After a sum every rank has it, and one step later all parameters do: what users see then "
        "(a loss of nan on all ranks) no longer shows where it came from. The finding names the "
        "first operation and the ranks that introduced it; later ones are only counted.\n\n"
        "NaN is counted in what any operation sends, Inf only in sums, averages and products (a "
        "maximum with Inf, or a mask with Inf that is broadcast, is normal). Inf alone is only "
        "possible: a loss scaler (torch.amp.GradScaler) produces Inf on purpose now and then and "
        "skips that step; when later operations of the same kind are finite again, the finding is "
        "resolved.",
    .causes = CAUSES({"A bad sample on one rank, or log(0) and 0/0 in the loss.",
                      "One rank only: torch.autograd.set_detect_anomaly(True) around forward and "
                      "backward names the operation."},
                     {"Overflow of half precision.",
                      "Inf before NaN; a loss scaler skips such a step by itself."},
                     {"A learning rate that is too high, or missing gradient clipping.",
                      "All ranks in the same step; the loss grew before."},
                     {"Uninitialized memory (torch.empty, a receive buffer that was never filled).",
                      "DC310 beside it; the fault is there from the first step."}),
    .source = "PyTorch 2.10 documentation, \"Automatic Mixed Precision examples\"; PyTorch 2.10 "
              "documentation, \"ProcessGroupNCCL Environment Variables\" (TORCH_NCCL_NAN_CHECK)",
    .example = "if (loss_is_bad_on_this_rank)           /* log(0) on one rank's sample */\n    "
               "gradient[0] = NAN;\nncclAllReduce(gradient, gradient, n, ncclFloat, ncclSum, comm, "
               "stream);\n",
    .fix_c = "loss = -logf(fmaxf(p, 1e-12f));         /* never log(0) */\nncclAllReduce(gradient, "
             "gradient, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_torch = "with torch.autograd.set_detect_anomaly(True):    # around forward, too: its "
                 "traceback is the one you need\n"
                 "    loss = criterion(model(x), y)\n"
                 "    loss.backward()\n"
                 "# or TORCH_NCCL_NAN_CHECK=1: ProcessGroupNCCL stops at the first collective that "
                 "is given a NaN\n",
    .on = {[EVENT_PAYLOAD] = nonfinite_on_payload},
    .state_bytes = {[OWNER_JOB] = sizeof(struct nonfinite)},
};
