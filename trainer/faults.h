/* faults.h: the mistakes that --fault seeds, each a row of a table (faults.c).
 *
 * The code that goes wrong stands where it would in a real job and asks fault_strikes(); the table
 * says what it does, how it shows and what ddpcheck should find. A new fault is a new enum value, a
 * new row and its code. */
#ifndef DDPTRAIN_FAULTS_H
#define DDPTRAIN_FAULTS_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/base/error.h"

enum fault_id {
    FAULT_NONE,
    FAULT_INPLACE_ACTIVATION,
    FAULT_INPLACE_BUCKET,
    FAULT_UNEVEN_UPDATES,
    FAULT_PARTIAL_BARRIER,
    FAULT_P2P_CYCLE,
    FAULT_PIPELINE_ORDER,
    FAULT_DP_STALE_REPLICA,
    FAULT_MIRRORED_NO_GROUP,
    FAULT_INIT_WORLD,
    FAULT_INIT_DUPLICATE,
    FAULT_INIT_GPU,
    FAULT_INIT_MISSING,
    FAULT_SAME_SHARD,
    FAULT_UNEVEN_INPUTS,
    FAULT_SHARED_COMM,
    FAULT_COMM_ORDER,
    FAULT_OOM_SKIP,
    FAULT_ACCUM_MISMATCH,
    FAULT_ACCUM_EVERY,
    FAULT_FORWARD_TWICE,
    FAULT_UNUSED_PARAMS,
    FAULT_BUFFERS_MISMATCH,
    FAULT_MODEL_MISMATCH,
    FAULT_CRASH,
    FAULT_AMP_SKIP,
    FAULT_WRONG_DEVICE,
    FAULT_FREE_IN_FLIGHT,
    FAULT_MISSING_EVENT,
    FAULT_EARLY_STEP,
    FAULT_SLOW_HOST,
    FAULT_SLOW_LOADER,
    FAULT_MORE_WORK,
    FAULT_GC_PAUSE,
    FAULT_SLOW_DEVICE,
    FAULT_THROTTLE_AFTER,
    FAULT_SLOW_LINK,
    FAULT_TINY_BUCKETS,
};

struct fault_kind {
    enum fault_id id;
    const char *name;
    int scenario;        /* number in the list of what the field asks about */
    const char *what;    /* what goes wrong */
    const char *symptom; /* what a user sees */
    const char *finding; /* what ddpcheck should report; "" where it has nothing to see */
    const char *twin;    /* options of the correct run; "": leave the fault out */
    int least_ranks;
};

/* The fault that a run was started with. */
struct fault {
    const struct fault_kind *kind; /* NULL: none */
    int rank;                      /* where it strikes, if on one rank only */
    int iteration;                 /* when it strikes, if once */
};

/* Returns NULL for an unknown name. */
const struct fault_kind *fault_find(const char *name);
/* True if this run has the fault. */
bool fault_is(const struct fault *fault, enum fault_id id);
/* True if it has, and it strikes on this rank. */
bool fault_strikes_rank(const struct fault *fault, enum fault_id id, int rank);
/* True if it has, and it strikes on this rank in this iteration. */
bool fault_strikes(const struct fault *fault, enum fault_id id, int rank, int iteration);

/* Prints the table, for people, or as tab-separated values with a first line of names. */
void faults_print(FILE *file, bool tabs);
/* Prints the names alone, as a paragraph for --help. */
void faults_print_names(FILE *file);

/* Faults of GPUs and links, which only emulated ones can be given. */

/* Sets what the emulated GPUs read when they are used for the first time, unless the environment
 * has it: call it before that, on all ranks. Does nothing for other faults. Fails where GPUs are
 * real. */
int hardware_make_faulty(const struct fault *fault, struct error *err);

#endif
