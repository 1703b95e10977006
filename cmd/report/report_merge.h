/* report_merge.h: puts reports of single hosts together to one of their job. */
#ifndef DDPCHECK_REPORT_MERGE_H
#define DDPCHECK_REPORT_MERGE_H

#include "cmd/report/report_model.h"

/* Moves what the report of database number `database` says into the job's, and leaves that empty.
 * What was lost goes to the job's analyzer, which knows all processes. Returns 0, or -1 when memory
 * is short. */
int report_merge(struct report *job, struct report *host, int database);
/* After the last: what ranks of several hosts did is one finding. Returns 0, or -1 when memory is
 * short. */
int report_merge_hosts(struct report *job);
/* Then, and after the job's own findings were added behind those of the hosts, which are
 * `hosts`: members once, by communicator; findings worst first, each once, without what others
 * explain. Returns 0, or -1 when memory is short. */
int report_merge_end(struct report *job, int hosts);

#endif
