/* run_collector.h: the collector of a run, a process of its own that outlives the job. */
#ifndef DDPCHECK_RUN_COLLECTOR_H
#define DDPCHECK_RUN_COLLECTOR_H

#include <stdbool.h>

#include "cmd/run.h"
#include "lib/base/error.h"

enum { COLLECTOR_PATIENCE_S = 30 }; /* for its start, and for its end after the job */

/* Starts it, with a socket to it in run->socket. Returns 0, or -1 with err. */
int run_start_collector(struct watched_run *run, struct error *err);
/* A job is worth more than its trace: says why nothing of it will be recorded. Without a collector
 * nobody knows whether it makes progress, so --timeout does nothing. */
void run_goes_unrecorded(struct watched_run *run, const char *why);
/* Waits until the collector watches the directory. One that says nothing meanwhile, because it is
 * stopped or its storage does not answer, is ended: the job starts unrecorded. Returns 0, or the
 * exit status. */
int run_wait_collector_ready(struct watched_run *run);
/* Reads what the collector says (collector_notify.h). Returns false when it has closed its end. */
bool run_read_collector(struct watched_run *run);
/* A collector that was killed is replaced: the rings hold what came meanwhile. */
void run_replace_collector(struct watched_run *run);
/* Closes the socket; the collector ends once no process records any more. */
void run_close_collector(struct watched_run *run);

#endif
