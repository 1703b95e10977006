/* job_choice.h: while the TUI shows the databases of a host: finds the database of the job's hub,
 * which knows more as soon as the job has several hosts. */
#ifndef DDPCHECK_JOB_CHOICE_H
#define DDPCHECK_JOB_CHOICE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

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
