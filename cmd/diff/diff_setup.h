/* diff_setup.h: how two jobs were started differently: versions, launcher, program. */
#ifndef DDPCHECK_DIFF_SETUP_H
#define DDPCHECK_DIFF_SETUP_H

#include "cmd/diff/diff_side.h"
#include "lib/base/rankset.h"

struct setup_difference {
    char what[128];       /* "NCCL", "NCCL_ALGO" */
    char value[2][512];   /* "not set": a variable that one side has; what a source does not say is
                             no difference */
    struct rankset ranks; /* for whom */
};

struct diff_setup {
    struct setup_difference *difference;
    int differences;
};

/* Compares the processes of equal ranks, or of `rank` and `with` where they are given (not -1).
 * Returns 0, or -1 when memory is short. */
int diff_setup(struct diff_setup *setup, struct diff_side *const side[2], int rank, int with);
void diff_setup_free(struct diff_setup *setup);

#endif
