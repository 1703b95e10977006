/* report_sources.h: the databases that a report is made from, one by one. */
#ifndef DDPCHECK_REPORT_SOURCES_H
#define DDPCHECK_REPORT_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/report/report_hub.h"
#include "lib/base/error.h"

struct trace;

enum { SOURCES_NAMED_MAX = 4 }; /* more databases are listed as ranges of names */

struct report_source {
    char *path;
    char *hosts;       /* of its processes: "n1, n2, n3" */
    char *host_ranges; /* the same hosts as ranges: "n[1-3]" */
    int processes;
    int unrecorded; /* processes that its collector could not record */
    uint64_t events;
    struct hub_part hub; /* that its host took part in the job of */
    bool complete;       /* its collector ended in order */
    bool collecting;     /* its collector runs now */
};

/* What each database of the trace is. Returns how many, with *sources for sources_free, or -1 with
 * err. */
int sources_describe(struct trace *trace, struct report_source **sources, struct error *err);
void sources_free(struct report_source *sources, int count);

#endif
