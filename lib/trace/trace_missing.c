/* trace_missing.c: finds out why a directory holds no trace. */
#include "lib/trace/trace_missing.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/trace.h"

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
    FILE *file = fopen(path, "re");
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

int trace_missing(const char *directory, struct error *err)
{
    struct dirent **entries;
    bool waiting = false;
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
    if (count > 0)
        return error_set(err,
                         "the last run recorded into %s " TRACE_NO_NCCL_CALL
                         "; to find out why: 'ddpcheck doctor -- PROGRAM', or, while it "
                         "runs, 'ddpcheck stacks --pid PID'",
                         directory);
    return error_set(
        err, "no trace database (*.db) in %s; record one with 'ddpcheck run -o %s -- PROGRAM'",
        directory, directory);
}

static int is_of_trace(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return is_rings(entry) || (length > 3 && strcmp(entry->d_name + length - 3, ".db") == 0);
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
