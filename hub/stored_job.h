/* stored_job.h: a job whose hosts are databases, judged by the hub's protocol.
 *
 * Each host is replayed by itself, in any order and by several threads: its records go to its own
 * analyzer, as they went to its collector's, and to its join (collector/join.h), which says in the
 * end how far its members came and what their hashes are. Then a hub of this process asks the hosts
 * for what a hub of the live job would have asked them for. Messages are those of the live job,
 * over the local transport; memory follows the number of processes, not that of the records. */
#ifndef DDPCHECK_STORED_JOB_H
#define DDPCHECK_STORED_JOB_H

#include "collector/join.h"
#include "hub/hub.h"

struct stored_job;

/* For `hosts` databases with `processes` in all. Returns 0, or -1 with err. */
int stored_job_open(struct stored_job **job, int hosts, int processes, struct error *err);
/* Where the records of a database go. */
struct join *stored_job_host(const struct stored_job *job, int host);

/* After join_report_all of each host: judges the job, and makes its hosts' part of it superfluous.
 * Returns 0, or -1 with err. */
int stored_job_judge(struct stored_job *job, uint64_t hang_after_ns, enum hub_ending ending,
                     struct error *err);
/* The job's findings, worst first. A process in them is the number that stored_job_process
 * translates into a database and its process there; false: it has none. */
void stored_job_visit(struct stored_job *job,
                      void (*visit)(void *context, const struct finding *finding), void *context);
bool stored_job_process(const struct stored_job *job, int number, int *host, int *process);
void stored_job_close(struct stored_job *job);

#endif
