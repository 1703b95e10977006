/* launcher.h: starts the ranks of --ranks N on this machine and looks after them. */
#ifndef DDPTRAIN_LAUNCHER_H
#define DDPTRAIN_LAUNCHER_H

#include <stdbool.h>

/* Starts this program `ranks` times with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, and waits for
 * all. With `gang` a rank that fails takes the others with it. Must be called before any CUDA call: a process that
 * has a CUDA context can't be forked. Returns the exit status of the rank that failed first (128 + signal), or 0. */
int launcher_run(int ranks, bool gang, char **argv);

#endif
