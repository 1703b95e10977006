/* log_files.h: what the names of a log's files say: a rank, and torchelastic's attempt. */
#ifndef DDPCHECK_IMPORT_LOG_FILES_H
#define DDPCHECK_IMPORT_LOG_FILES_H

#include "lib/import/log_job.h"

/* Sets what job knows of the file in hand: file_rank, attempt, ranks_are_local. Its lines are
 * believed more than its name (attempt_0/2/stderr.log of the second node), and names in which two
 * nodes have the same rank are of local ranks. Returns 0, or -1 when memory is short. */
int log_file_begin(struct log_job *job, const struct import_head *head);
void log_files_free(struct log_job *job);

#endif
