/* job_folder.c: finds what the hub of a job has left beside the databases of its hosts. */
#include "cmd/hub/job_folder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/trace/trace.h"

static bool has_process(const struct trace *trace, const struct process_info *info)
{
    for (int i = 0; i < trace_process_count(trace); i++) {
        const struct process_info *other = trace_process(trace, i);
        if (other->pid == info->pid && other->start_ticks == info->start_ticks &&
            strcmp(other->host, info->host) == 0)
            return true;
    }
    return false;
}

static bool spans_hosts(const struct trace *job)
{
    for (int i = 1; i < trace_process_count(job); i++)
        if (strcmp(trace_process(job, i)->host, trace_process(job, 0)->host) != 0)
            return true;
    return false;
}

bool job_spans_hosts(const char *database)
{
    struct trace *job = NULL;
    struct error err;
    bool does = trace_open(&job, &database, 1, &err) == 0 && spans_hosts(job);
    trace_close(job);
    return does;
}

/* The hub may be that of an earlier run in the directory. */
static bool is_its_job(const char *directory, const char *database)
{
    struct trace *hosts = NULL, *job = NULL;
    struct error err;
    bool is_its = trace_open(&hosts, &directory, 1, &err) == 0 && trace_process_count(hosts) &&
                  trace_open(&job, &database, 1, &err) == 0 && spans_hosts(job) &&
                  has_process(job, trace_process(hosts, trace_process_count(hosts) - 1));
    trace_close(job);
    trace_close(hosts);
    return is_its;
}

bool job_folder_find(const char *const *directories, int count, char path[PATH_MAX])
{
    for (int i = 0; i < count; i++) {
        int bytes = snprintf(path, PATH_MAX, "%s/" JOB_DATABASE, directories[i]);
        if (bytes < PATH_MAX && access(path, R_OK) == 0 && is_its_job(directories[i], path))
            return true;
    }
    return false;
}
