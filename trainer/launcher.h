/* launcher.h: starts the ranks of --ranks N on this machine and looks after them. */
#ifndef DDPTRAIN_LAUNCHER_H
#define DDPTRAIN_LAUNCHER_H

#include "trainer/options.h"

/* Starts this program --ranks times with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
 * torchrun's TORCHELASTIC_RUN_ID, _RESTART_COUNT and _MAX_RESTARTS set, and waits for all. A rank
 * that fails takes the others with it, unless --no-gang. With --elastic all ranks are then started
 * again, at most --max-restarts times, with a higher restart count and a new port; not if the rank
 * refused its input (status 2), nor if the launcher itself was asked to end. Must be called before
 * any CUDA call: a process that has a CUDA context can't be forked. Returns the exit status of the
 * rank that failed first (128 + signal) in the last attempt, or 0. */
int launcher_run(const struct train_options *options, char **argv);

#endif
