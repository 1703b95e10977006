/* environment.h: which rank this process is, from what its launcher put into the environment. */
#ifndef DDPTRAIN_ENVIRONMENT_H
#define DDPTRAIN_ENVIRONMENT_H

#include <stdbool.h>

#include "lib/base/error.h"

struct environment {
    const char *launcher;       /* "torchrun", "Open MPI", ...; NULL: none, a single rank */
    int rank, local_rank, size; /* local_rank: -1 if the launcher does not say */
    const char *host;           /* of rank 0 */
    int port;                   /* of rank 0's store */
    int store_socket;           /* rank 0: a listening socket inherited from the launcher, or -1 */
    int restart;                /* how often an elastic launcher has started all ranks again */
};

/* The names that ddptrain's own launcher sets beside RANK, LOCAL_RANK and WORLD_SIZE. */
#define ENVIRONMENT_STORE_SOCKET "DDPTRAIN_STORE_SOCKET"

/* Reads the environment. `own_launcher`: --ranks was given, so that only RANK and WORLD_SIZE count
 * (an interactive Slurm shell has SLURM_PROCID too). Returns 0, or -1 with a message if what is
 * there makes no sense. */
int environment_read(struct environment *environment, bool own_launcher, struct error *err);

#endif
