/* job_folder.h: the database of a hub that `ddpcheck run --hub auto` left in a trace directory. */
#ifndef DDPCHECK_JOB_FOLDER_H
#define DDPCHECK_JOB_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#define JOB_FOLDER   "hub" /* in the trace directory */
#define JOB_DATABASE JOB_FOLDER "/job.db"

/* The first of the directories whose hub has a job of several hosts: `path` becomes that of its
 * database. False if there is none, or if a path is that of a database. */
bool job_folder_find(const char *const *directories, int count, char path[PATH_MAX]);
/* Whether processes of several hosts are in a database. False if it can't be read. */
bool job_spans_hosts(const char *database);

#endif
