/* incomplete_iteration.c: DC504: some ranks began an iteration before they had made all operations
 * of the last one. */
#include "analyzer/checks/training/loop_report.h"
#include "analyzer/match/window.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

static bool is_ahead_of(const struct arrival *a, const struct arrival *b)
{
    return a->loop.numbered ? a->loop.number > b->loop.number : a->laps > b->laps;
}

/* What the one that is ahead made in the iteration that the other is still in, and what it usually
 * makes. */
static void laps_of(const struct arrival *ahead, const struct arrival *behind, uint32_t *made,
                    uint32_t *usual)
{
    bool took_part = ahead->loop.numbered ? ahead->before.number == behind->loop.number
                                          : ahead->laps == behind->laps + 1;
    *made = took_part ? ahead->before.operations : 0;
    *usual = took_part ? ahead->earlier.operations : ahead->before.operations;
}

/* If the other makes more than it usually does instead, it is that one's call too many. */
bool iteration_is_incomplete(const struct arrival *a, const struct arrival *b)
{
    const struct arrival *ahead = is_ahead_of(a, b) ? a : b;
    const struct arrival *behind = ahead == a ? b : a;
    uint32_t made, usual;
    laps_of(ahead, behind, &made, &usual);
    return made < usual && behind->now.operations <= behind->before.operations;
}

static struct act describe_iteration(const struct loop_divergence *loop_divergence,
                                     const struct arrival *arrival)
{
    bool ahead = false;
    for (int i = 0; i < loop_divergence->sides; i++)
        ahead = ahead || is_ahead_of(arrival, &loop_divergence->side[i].example);
    return (struct act){.did = ahead ? DID_NEXT_ITERATION : DID_LAST_ITERATION};
}

static void say_iteration(struct draft *draft, const struct loop_divergence *loop_divergence)
{
    const struct arrival *a = loop_divergence_example(loop_divergence, 0),
                         *b = loop_divergence_example(loop_divergence, 1);
    int early = is_ahead_of(a, b) ? 0 : 1;
    const struct arrival *ahead = early ? b : a;
    const struct arrival *behind = early ? a : b;
    char next[LOOP_PLACE_BYTES], before[LOOP_PLACE_BYTES];
    uint32_t made, usual;
    laps_of(ahead, behind, &made, &usual);
    const struct values values = {
        .name = {arrival_iteration_text(ahead, next, sizeof next),
                 arrival_iteration_text(behind, before, sizeof before)},
        .value = {made, usual},
        .flag = {early == 1, loop_divergence->mismatch},
    };
    draft_headline(draft, HEADLINE_INCOMPLETE_ITERATION, ADVICE_INCOMPLETE_ITERATION, &values);
}

/* --- where no range marks iterations ------------------------------------------------------- */

/* One side goes on with the round that all have made so far; the other begins the next, and leaves
 * out reductions only. */
bool round_is_incomplete(const struct comm *comm, uint64_t number, const struct arrival *usual,
                         const struct arrival *early)
{
    uint32_t place;
    const struct round *round = period_place(lockstep_period(comm), number, &place);
    return round && place && signature_hash(&usual->signature) == round->hash[place] &&
           signature_hash(&early->signature) == round->hash[0] &&
           loop_is_reduction(usual->signature.api) && loop_is_reduction(early->signature.api);
}

static bool is_early(const struct loop_divergence *loop_divergence, const struct arrival *arrival)
{
    return signature_hash(&arrival->signature) == loop_divergence->round_first;
}

static struct act describe_round(const struct loop_divergence *loop_divergence,
                                 const struct arrival *arrival)
{
    return (struct act){.did = is_early(loop_divergence, arrival) ? DID_NEXT_ROUND
                                                                  : DID_LAST_ROUND};
}

static void say_round(struct draft *draft, const struct loop_divergence *loop_divergence)
{
    int early = is_early(loop_divergence, loop_divergence_example(loop_divergence, 0)) ? 0 : 1;
    const struct values values = {
        .value = {loop_divergence->place, loop_divergence->round,
                  (int64_t)loop_divergence->round_begin},
        .flag = {early == 1},
    };
    draft_headline(draft, HEADLINE_INCOMPLETE_ROUND, ADVICE_INCOMPLETE_ITERATION, &values);
}

const struct loop_divergence_rule incomplete_iteration_rule = {&check_incomplete_iteration,
                                                               describe_iteration, say_iteration};
const struct loop_divergence_rule incomplete_round_rule = {&check_incomplete_iteration,
                                                           describe_round, say_round};

const struct check check_incomplete_iteration = {
    .code = DC504,
    .name = "incomplete-iteration",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CUDA,
    .needs = LACKS_MARKS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_WHY),
    .title = "a new iteration began before the previous iteration's reduction was complete",
    .text =
        "At one operation of a communicator some ranks are in one iteration and others already in "
        "the next, although they issued fewer operations in the first than an iteration usually "
        "has. Their peers reduce the rest of the old iteration with what those ranks send for the "
        "new one. DistributedDataParallel reports the same as \"Expected to have finished "
        "reduction in the prior iteration\".\n\n"
        "It shows as a hang or as wrong results if the calls differ. If they match, there is no "
        "error: gradients of two iterations are averaged, and a hang comes at the end of the "
        "epoch.\n\n"
        "Iterations come from NVTX ranges (docs/nvtx.md). Without any, the repeating pattern of "
        "the communicator's operations is used, after three equal rounds. Then it is reported if a "
        "rank begins the next round while the others still reduce, and the calls do not match; "
        "otherwise the same fault shows as DC101, DC102, DC201 or DC206. It is certain if the "
        "calls themselves do not match, otherwise possible: the names could be wrong. It is "
        "reported only after two iterations in which all ranks agreed, and not if a rank makes a "
        "call too many, if records were lost (DC901), or for threads that are in no iteration.",
    .causes =
        CAUSES({"A rank skips its backward: an out-of-memory error that is caught, a bad or empty "
                "batch, a NaN loss.",
                "Its log; the rank is ahead by one iteration."},
               {"Parameters that got no gradient on some ranks, so that DDP's buckets stay open.",
                "The missing operations are the iteration's last; find_unused_parameters=True "
                "makes it legal. Without it they can drift silently, too."},
               {"Two forward passes before one backward, or parameters used outside of forward.",
                "PyTorch's own 'Expected to have finished reduction' appears on a rank."}),
    .source = "PyTorch 2.10 documentation, torch.nn.parallel.DistributedDataParallel "
              "(find_unused_parameters, uneven inputs)",
    .example = "if (loss_is_finite)          /* on one rank only */\n    "
               "backward_and_reduce(model, comm);\n",
    .fix_c = "if (!loss_is_finite)\n    zero_gradients(model);   /* take part with zeros "
             "*/\nbackward_and_reduce(model, comm);\n",
    .fix_torch = "bad = (~torch.isfinite(loss.detach())).float()\n"
                 "dist.all_reduce(bad, op=dist.ReduceOp.MAX)       # every rank decides the same, "
                 "before backward\n"
                 "if bad.item() == 0:\n"
                 "    loss.backward()\n"
                 "    optimizer.step()\n"
                 "optimizer.zero_grad()\n",
    .on = {[EVENT_OPERATION] = loop_on_operation, [EVENT_ITERATION] = loop_on_iteration},
};
