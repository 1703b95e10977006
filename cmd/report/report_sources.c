/* report_sources.c: finds and opens the databases of a report. */
#include "cmd/report/report_sources.h"

#include <dirent.h>
#include <errno.h>
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

static int fail_sources_memory(struct error *err)
{
    return error_set(err, "can't list the traces: memory is short");
}

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
static int list_hosts(struct report_source *source, const struct trace *trace)
{
    const char **host = calloc((size_t)source->processes + 1, sizeof *host);
    int hosts = 0;
    if (!host)
        return -1;
    for (int i = 0; i < source->processes; i++)
        if (*trace_process(trace, i)->host)
            host[hosts++] = trace_process(trace, i)->host;
    hosts = names_sort(host, hosts);
    source->hosts = join_host_names(host, hosts);
    source->host_ranges = name_ranges(host, hosts);
    free(host);
    return source->hosts && source->host_ranges ? 0 : -1;
}

static int inspect(struct report_source *source, struct error *err)
{
    struct trace *trace;
    const char *path = source->path;
    source->collecting = is_collecting(path);
    if (trace_open(&trace, &path, 1, err))
        return -1;
    source->complete = trace_complete(trace);
    source->collecting &= !source->complete; /* a hub outlives its job */
    source->events = trace_event_count(trace);
    source->processes = trace_process_count(trace);
    source->unrecorded = trace_unrecorded(trace);
    int result = list_hosts(source, trace) ? fail_sources_memory(err) : 0;
    trace_close(trace);
    return result;
}

static int add_report_source(struct report_source **sources, int *count, const char *path,
                             struct error *err)
{
    struct report_source *more = reallocarray(*sources, *count + 1, sizeof *more);
    if (!more)
        return fail_sources_memory(err);
    *sources = more;
    more[*count] = (struct report_source){.path = strdup(path)};
    if (!more[*count].path)
        return fail_sources_memory(err);
    return inspect(&more[(*count)++], err);
}

static int is_database_entry(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && dot != entry->d_name && !strcmp(dot, ".db");
}

static int add_source_directory(struct report_source **sources, int *count, const char *path,
                                struct error *err)
{
    struct dirent **entry;
    int entries = scandir(path, &entry, is_database_entry, alphasort);
    if (entries < 0)
        return error_set(err, "can't read the directory %s: %s", path, strerror(errno));
    int result = 0;
    for (int i = 0; i < entries; i++) {
        char file[PATH_MAX];
        if (!result &&
            snprintf(file, sizeof file, "%s/%s", path, entry[i]->d_name) < (int)sizeof file)
            result = add_report_source(sources, count, file, err);
        free(entry[i]);
    }
    free(entry);
    return result;
}

int sources_find(const char *const *paths, int count, struct report_source **sources,
                 struct error *err)
{
    int found = 0;
    *sources = NULL;
    for (int i = 0; i < count; i++) {
        struct stat file;
        bool directory = !stat(paths[i], &file) && S_ISDIR(file.st_mode);
        if ((directory ? add_source_directory : add_report_source)(sources, &found, paths[i],
                                                                   err)) {
            sources_free(*sources, found);
            *sources = NULL;
            return -1;
        }
    }
    return found;
}

void sources_free(struct report_source *sources, int count)
{
    for (int i = 0; i < count; i++) {
        free(sources[i].path);
        free(sources[i].hosts);
        free(sources[i].host_ranges);
    }
    free(sources);
}
