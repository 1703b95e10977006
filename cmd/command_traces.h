/* command_traces.h: what people name in the place of a trace: addresses of hubs, logs and dumps.
 *
 *     struct command_traces traces;
 *     if (command_traces_open(&traces, argv, &argc, &err) < 0)
 *         return command_fail(&err);
 *     ... argv has paths of databases and directories only
 *     command_traces_close(&traces); */
#ifndef DDPCHECK_COMMAND_TRACES_H
#define DDPCHECK_COMMAND_TRACES_H

#include <limits.h>

#include "cmd/hub/job_copy.h"

struct command_traces {
    struct job_copies copies;
    char imported[PATH_MAX]; /* the database of what was imported; "": nothing was */
    char *imported_name;     /* what people know that by: "rank0.log, rank1.log" */
};

/* Replaces addresses of hubs by the databases of copies (job_copies_open). Imports what is neither
 * a trace nor an address, all as one job, into a temporary database, which takes the place of the
 * first of them, and says so on stderr. `*argc` becomes as many as there are then. Returns 0
 * (command_traces_close them), or -1 with err. */
int command_traces_open(struct command_traces *traces, char **argv, int *argc, struct error *err);
/* Removes what is temporary. */
void command_traces_close(struct command_traces *traces);
/* What people know a path by. */
const char *command_traces_name(const struct command_traces *traces, const char *path);

#endif
