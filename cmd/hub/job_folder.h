/* job_folder.h: the database of a hub that `ddpcheck run --hub auto` left in a trace directory. */
#ifndef DDPCHECK_JOB_FOLDER_H
#define DDPCHECK_JOB_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

#define JOB_FOLDER   "hub" /* in the trace directory */
#define JOB_DATABASE JOB_FOLDER "/job.db"

/* The first of the directories whose hub has a job of several hosts: `path` becomes that of its
 * database. False if there is none, or if a path is that of a database. */
bool job_folder_find(const char *const *directories, int count, char path[PATH_MAX]);

/* While the TUI shows the databases of a host: finds the database of the job's hub,
 * which knows more as soon as the job has several hosts. */

struct job_copy;

/* Zero-initialised, but for what the caller knows. */
struct job_choice {
    const char *const *directories; /* where a hub may have its folder */
    int count;
    struct job_copy *copy; /* of a hub elsewhere; NULL: there is none */
    uint64_t due_ns;       /* when to look again */
    bool is_copy;          /* the copy was chosen */
    char path[PATH_MAX];
};

/* struct tui_options' `instead` and `trouble`; context is a struct job_choice. */
bool job_choice_find(void *context, const char **path, const char **title);
void job_choice_trouble(void *context, struct error *trouble);

#endif
