/* candidates.h: the processes of this host that were started with a trace directory, as /proc shows
 * them: those of them that have made no NCCL call have no ring. */
#ifndef DDPCHECK_COLLECTOR_CANDIDATES_H
#define DDPCHECK_COLLECTOR_CANDIDATES_H

#include <stdbool.h>

enum { CANDIDATES_MAX = 1024, CANDIDATE_PLACE_BYTES = 320, CANDIDATE_ENVIRONMENT_BYTES = 1 << 17 };

/* What of a rank a process has before its first call. Shells, tools beside a rank and launchers
 * that are native programs have none, though their environment is the rank's. */
enum rank_sign { SIGN_UNREAD, NO_SIGN, RUNS_PYTHON, HAS_LIBRARY };

struct candidate {
    int pid, parent, rank; /* rank -1: no launcher's variable says it */
    int world_size;        /* -1: not known */
    int variable;          /* which launcher's, the most trusted first; of a rank */
    enum rank_sign sign;   /* read it with candidate_sign */
    bool is_recorded;      /* it has called NCCL */
    bool is_launcher;      /* of one that has, or of another candidate */
    bool may_be_rank;      /* of those without a number: neither what started ranks nor what a rank
                              started */
};

struct candidates {
    struct candidate item[CANDIDATES_MAX];
    int count;
    char environment[CANDIDATE_ENVIRONMENT_BYTES]; /* of the process that is read now */
};

/* Finds the processes with the trace directory in their environment, this one excepted. What can't
 * be read is left out. A launcher that another one started, as torchrun under srun, has a number of
 * its own, which is no rank's. */
void candidates_find(struct candidates *candidates, const char *directory);
/* Marks as launchers those above a process that is recorded: they started it. */
void candidates_mark_launchers(struct candidates *candidates);
/* NULL: it is none. */
struct candidate *candidate_with(struct candidates *candidates, int pid);
/* Of a rank's processes the one with the best sign, of these the outermost: the others are its
 * loaders. NULL: there is none. */
const struct candidate *candidate_of(struct candidates *candidates, int rank);
/* By the files that it has mapped, whose list is read when it is needed first: it can be long. */
enum rank_sign candidate_sign(struct candidate *candidate);
/* Where its main thread is: "load() at train.py:12", ", in barrier()" behind it if the line calls a
 * library's function; or "next_rendezvous() of torchrun"; or what the kernel says of the thread.
 * Returns `place`, which has room for CANDIDATE_PLACE_BYTES. */
const char *candidate_place(int pid, char *place);

#endif
