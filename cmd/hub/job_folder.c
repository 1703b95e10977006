/* job_folder.c: finds the database of a job's hub: beside those of its hosts, or a copy. */
#include "cmd/hub/job_folder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/hub/job_copy.h"
#include "lib/base/clock.h"
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

static bool job_spans_hosts(const char *database)
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

/* --- the choice of a database --- */

static const uint64_t look_every_ns = 1000000000;

bool job_choice_find(void *context, const char **path, const char **title)
{
    struct job_choice *choice = context;
    uint64_t now_ns = monotonic_now_ns();
    if (now_ns < choice->due_ns)
        return false;
    choice->due_ns = now_ns + look_every_ns;
    if (job_folder_find(choice->directories, choice->count, choice->path)) {
        *path = choice->path;
        return true;
    }
    choice->is_copy = choice->copy && job_spans_hosts(job_copy_database(choice->copy));
    if (choice->is_copy) {
        *path = job_copy_database(choice->copy);
        *title = job_copy_name(choice->copy);
    }
    return choice->is_copy;
}

void job_choice_trouble(void *context, struct error *trouble)
{
    const struct job_choice *choice = context;
    if (choice->is_copy)
        job_copy_trouble(choice->copy, trouble);
}
