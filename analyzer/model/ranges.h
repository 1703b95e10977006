/* ranges.h: what a program means by the name of an NVTX range.
 *
 * Names come from trainers ("iteration 12", "train_step", "generator backward"), from PyTorch's
 * emit_nvtx
 * ("Optimizer.step#Adam.step", "DistributedDataParallel.forward, seq = 7") and from its profiler
 * ("ProfilerStep#12"). What is not understood is RANGE_OTHER: a phase to be shown, and no more. */
#ifndef DDPCHECK_RANGES_H
#define DDPCHECK_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum range_kind {
    RANGE_OTHER,
    RANGE_ITERATION,         /* one round of the training loop */
    RANGE_STEP_OR_ITERATION, /* "step": the optimizer's inside an iteration, else an iteration */
    RANGE_MICRO_STEP, /* one of several forward and backward passes whose gradients are accumulated
                       */
    RANGE_FORWARD,
    RANGE_BACKWARD,
    RANGE_REDUCE,
    RANGE_STEP /* the optimizer's */
};

struct range_meaning {
    enum range_kind kind;
    bool has_number;
    uint64_t number; /* "iteration 12" */
    uint64_t model;  /* "generator" of "generator backward", hashed; 0 none */
};

/* iteration_name: what DDPCHECK_ITERATION says, NULL if nothing: then ranges that begin so, and no
 * others, are iterations. */
struct range_meaning range_meaning_of(const char *text, const char *iteration_name);

#endif
