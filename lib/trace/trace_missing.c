/* trace_missing.c: finds out why a directory holds no trace. */
#include "lib/trace/trace_missing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/plain_file.h"
#include "lib/trace/trace.h"

enum { TRACES_BYTES = 256 };

static int is_recording(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int is_rings(const struct dirent *entry)
{
    return strncmp(entry->d_name, "rings", strlen("rings")) == 0;
}

/* The directory that the file `name` names holds a ring file. */
static bool has_recordings(const char *directory, const char *name)
{
    char path[PATH_MAX], rings[PATH_MAX];
    struct dirent **entries;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = plain_file_text(path);
    bool is_read = file && fgets(rings, sizeof rings, file);
    if (file)
        fclose(file);
    if (!is_read)
        return false;
    rings[strcspn(rings, "\n")] = 0;
    int count = scandir(rings, &entries, is_recording, NULL);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    if (count >= 0)
        free(entries);
    return count > 0;
}

static bool is_named_database(const char *name)
{
    size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, ".db") == 0;
}

static int is_database(const struct dirent *entry)
{
    return is_named_database(entry->d_name);
}

static bool has_database(const char *directory, const char *name)
{
    char path[PATH_MAX];
    struct dirent **entries;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int count = scandir(path, &entries, is_database, NULL);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    if (count >= 0)
        free(entries);
    return count > 0;
}

/* "job1, job2, ...": the directories in it that hold traces. Returns how many. */
static int list_traces(const char *directory, char *list, size_t bytes)
{
    static const char more[] = ", ...";
    struct dirent **entries;
    int traces = 0, count = scandir(directory, &entries, is_recording, alphasort);
    size_t used = 0;
    list[0] = 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        bool is_trace = has_database(directory, name);
        bool is_full = used + strlen(name) + 2 * sizeof more > bytes;
        if (is_trace && !is_full)
            used += (size_t)snprintf(list + used, bytes - used, "%s%s", traces ? ", " : "", name);
        else if (is_trace && strcmp(list + used, more) != 0)
            snprintf(list + used, bytes - used, "%s", more);
        traces += is_trace;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return traces;
}

/* A collector holds the lock of the directory (collector/trace_directory.h) while its job runs. */
static bool is_recorded_now(const char *directory)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/collector.lock", directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

int trace_missing(const char *directory, struct error *err)
{
    struct dirent **entries;
    bool waiting = false;
    char traces[TRACES_BYTES];
    int count = scandir(directory, &entries, is_rings, NULL);
    for (int i = 0; i < count; i++) {
        waiting = waiting || has_recordings(directory, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    if (waiting)
        return error_set(err,
                         "no trace database (*.db) in %s, but recordings are waiting: store them "
                         "with 'ddpcheck collect %s'",
                         directory, directory);
    if (count > 0 && is_recorded_now(directory))
        return error_set(err,
                         "the job that records into %s still runs, and has not called NCCL yet: it "
                         "may be importing modules or loading data; 'ddpcheck stacks --pid PID' "
                         "shows where a process of it is",
                         directory);
    if (count > 0)
        return error_set(err,
                         "the last run recorded into %s " TRACE_NO_NCCL_CALL
                         "; to find out why: 'ddpcheck doctor -- PROGRAM'",
                         directory);
    int found = list_traces(directory, traces, sizeof traces);
    if (found)
        return error_set(err,
                         "%s is no trace, but holds %d: %s; name one, such as %s/%.*s, or several "
                         "that are hosts of one job",
                         directory, found, traces, directory, (int)strcspn(traces, ","), traces);
    return error_set(
        err, "no trace database (*.db) in %s; record one with 'ddpcheck run -o %s -- PROGRAM'",
        directory, directory);
}

static int is_of_trace(const struct dirent *entry)
{
    return is_rings(entry) || is_database(entry);
}

int trace_check_directory(const char *directory, struct error *err)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_of_trace, NULL);
    if (count < 0 && (errno == ENOENT || errno == ENOTDIR))
        return error_set(err,
                         "%s%s%s: name the directory that the job records into (ddpcheck-trace, or "
                         "-o DIR of 'ddpcheck run')",
                         errno == ENOENT ? "there is no directory " : "", directory,
                         errno == ENOENT ? "" : " is not a directory");
    if (count < 0)
        return error_unreadable(err, "the directory ", directory, errno);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return count > 0 ? 0 : trace_missing(directory, err);
}

static bool is_strange_directory(const char *directory)
{
    struct dirent **entries;
    char traces[TRACES_BYTES];
    bool is_of_ddpcheck = false;
    int count = scandir(directory, &entries, is_recording, NULL);
    for (int i = 0; i < count; i++) {
        is_of_ddpcheck |= is_of_trace(entries[i]);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return count > 0 && !is_of_ddpcheck && !list_traces(directory, traces, sizeof traces);
}

bool trace_is_strange(const char *path)
{
    static const char database[] = "SQLite format 3";
    char head[sizeof database];
    struct stat status;
    if (stat(path, &status) || is_named_database(path))
        return false;
    if (S_ISDIR(status.st_mode))
        return is_strange_directory(path);
    if (!S_ISREG(status.st_mode))
        return S_ISFIFO(status.st_mode);
    FILE *file = plain_file_text(path);
    size_t bytes = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    return bytes && memcmp(head, database, bytes) != 0;
}
