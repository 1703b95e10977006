/* log_ras.h: NCCL's RAS report as text, alone in a file or in a job's log. */
#ifndef DDPCHECK_IMPORT_LOG_RAS_H
#define DDPCHECK_IMPORT_LOG_RAS_H

#include "lib/import/log_job.h"

/* Takes a line of a report. Returns 1, 0 if it is none, -1 when memory is short. */
int log_ras_line(struct log_job *job, const char *text, size_t bytes);
/* Gives the sink what the last report said; before log_messages_end. */
int log_ras_end(struct log_job *job);

#endif
