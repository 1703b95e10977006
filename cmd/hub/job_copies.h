/* job_copies.h: lets a command that reads traces take addresses of hubs as well.
 *
 *     struct job_copies copies;
 *     if (job_copies_open(&copies, argv, argc, &err) < 0)
 *         return command_fail(&err);
 *     ... argv has paths of databases only
 *     job_copies_close(&copies); */
#ifndef DDPCHECK_JOB_COPIES_H
#define DDPCHECK_JOB_COPIES_H

#include "cmd/hub/job_copy.h"

enum { JOB_COPIES_MAX = 16 };

struct job_copies {
    struct job_copy *copy[JOB_COPIES_MAX];
    int count;
};

/* Replaces the arguments that are addresses of hubs by the databases of copies, as they are now.
 * Returns 0 (job_copies_close them), or -1 with err. */
int job_copies_open(struct job_copies *copies, char **argv, int argc, struct error *err);
void job_copies_close(struct job_copies *copies);
/* What people know a path by: the hub's address, if it is a copy's. */
const char *job_copies_name(const struct job_copies *copies, const char *path);

#endif
