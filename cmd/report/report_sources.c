/* report_sources.c: describes the databases of a report, one by one. */
#include "cmd/report/report_sources.h"

#include <glob.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/name_ranges.h"
#include "lib/base/text.h"
#include "lib/trace/trace.h"

/* /proc/locks names the file of each lock by device and inode. Asking the kernel for the lock
 * itself would, for a moment, take it from a collector that is just starting. */
static bool is_locked(const struct stat *file)
{
    FILE *locks = fopen("/proc/locks", "re");
    if (!locks)
        return false;
    char line[256];
    bool found = false;
    while (!found && fgets(line, sizeof line, locks)) {
        unsigned device_major, device_minor;
        uint64_t inode;
        char kind[16];
        found = sscanf(line, "%*d: %15s %*s %*s %*d %x:%x:%" SCNu64, kind, &device_major,
                       &device_minor, &inode) == 4 &&
                !strcmp(kind, "FLOCK") && inode == file->st_ino &&
                device_major == major(file->st_dev) && device_minor == minor(file->st_dev);
    }
    fclose(locks);
    return found;
}

/* Several hosts or containers that share the directory have a lock each. */
static bool is_collecting(const char *database)
{
    char copy[PATH_MAX], locks[PATH_MAX];
    struct stat file;
    glob_t found;
    bool collecting = false;
    snprintf(copy, sizeof copy, "%s", database);
    if (snprintf(locks, sizeof locks, "%s/collector*.lock", dirname(copy)) >= (int)sizeof locks ||
        glob(locks, 0, NULL, &found))
        return false;
    for (size_t i = 0; i < found.gl_pathc && !collecting; i++)
        collecting = !stat(found.gl_pathv[i], &file) && is_locked(&file);
    globfree(&found);
    return collecting;
}

static char *join_host_names(const char *const *name, int count)
{
    struct text text = {0};
    text_add(&text, "%s", "");
    for (int i = 0; i < count; i++)
        text_add(&text, "%s%s", i ? ", " : "", name[i]);
    return text_take(&text);
}

/* The hosts of its processes; a source may not know them. Returns 0 or -1. */
static int list_hosts(struct report_source *source, const struct trace *trace, int database)
{
    const char **host = calloc((size_t)source->processes + 1, sizeof *host);
    int hosts = 0;
    if (!host)
        return -1;
    for (int i = 0; i < source->processes; i++) {
        const struct process_info *process =
            trace_process(trace, trace_process_of(trace, database, i));
        if (*process->host)
            host[hosts++] = process->host;
    }
    hosts = names_sort(host, hosts);
    source->hosts = join_host_names(host, hosts);
    source->host_ranges = name_ranges(host, hosts);
    free(host);
    return source->hosts && source->host_ranges ? 0 : -1;
}

static int describe_source(struct report_source *source, struct trace *trace, int database)
{
    const char *path = trace_database_path(trace, database);
    *source = (struct report_source){
        .path = strdup(path),
        .processes = trace_database_processes(trace, database),
        .unrecorded = trace_database_unrecorded(trace, database),
        .events = trace_database_events(trace, database),
        .collecting = is_collecting(path),
        .complete = false,
    };
    source->complete = trace_database_complete(trace, database);
    source->collecting &= !source->complete; /* a hub outlives its job */
    hub_part_read(&source->hub, trace, database);
    return source->path ? list_hosts(source, trace, database) : -1;
}

int sources_describe(struct trace *trace, struct report_source **sources, struct error *err)
{
    int count = trace_database_count(trace);
    *sources = calloc((size_t)count + 1, sizeof **sources);
    for (int i = 0; *sources && i < count; i++)
        if (describe_source(&(*sources)[i], trace, i) < 0) {
            sources_free(*sources, i + 1);
            *sources = NULL;
        }
    return *sources ? count : error_memory(err, "can't list the traces");
}

void sources_free(struct report_source *sources, int count)
{
    for (int i = 0; i < count; i++) {
        free(sources[i].path);
        free(sources[i].hosts);
        free(sources[i].host_ranges);
        hub_part_free(&sources[i].hub);
    }
    free(sources);
}
