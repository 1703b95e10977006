/* run_failed.h: the program of a run that failed. */
#ifndef DDPCHECK_CMD_RUN_FAILED_H
#define DDPCHECK_CMD_RUN_FAILED_H

#include "cmd/run.h"

/* The program has ended: if it failed by itself, sends the collector how, and which functions are
 * missing of the programs in its command line. */
void run_send_failure(struct watched_run *run, char *const *argv);

#endif
