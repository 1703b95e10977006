/* output.c: the table of formats, made from formats.def, and an export to standard output or
 * atomically to a file. */
#include "cmd/export/output.h"

#include <errno.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/export/export.h"
#include "lib/base/partial_file.h"

static int fail_output(struct output *output, struct error *err)
{
    int cause = errno;
    output_abandon(output);
    if (!output->path) { /* it is said here; main() need not say it again */
        __fpurge(stdout);
        clearerr(stdout);
    }
    if (!output->path)
        return error_set(err, "can't write the export: %s", strerror(cause));
    const char *todo = "";
    if (cause == ENOSPC || cause == EDQUOT)
        todo = "; make room there, or choose another place with -o";
    else if (cause == ENOENT || cause == EACCES)
        todo = "; name a file in a directory that exists and that you may write to";
    return error_set(err, "can't write %s: %s%s", output->path, strerror(cause), todo);
}

static int open_temporary(struct output *output)
{
    if (asprintf(&output->temporary, "%s.tmp.XXXXXX", output->path) < 0) {
        output->temporary = NULL;
        return -1;
    }
    sigset_t all, before; /* a signal must not come before it is known that the file is there */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    int fd = mkstemp(output->temporary);
    if (fd >= 0)
        partial_file_begin(output->temporary);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (fd < 0) {
        free(output->temporary);
        output->temporary = NULL;
        return -1;
    }
    mode_t mask = umask(0); /* mkstemp's file is for its owner alone; this one is like any other */
    umask(mask);
    if (fchmod(fd, 0666 & ~mask) == 0 && (output->file = fdopen(fd, "w")))
        return 0;
    close(fd);
    return -1;
}

int output_open(struct output *output, const char *path, struct error *err)
{
    struct stat status;
    *output = (struct output){0};
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error like a full disk */
    if (!path || !strcmp(path, "-")) {
        output->file = stdout;
        return 0;
    }
    output->path = path;
    bool exists = stat(path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return fail_output(output, err);
    }
    if (exists && !S_ISREG(status.st_mode))
        output->file = fopen(path, "we");
    else if (open_temporary(output))
        return fail_output(output, err);
    return output->file ? 0 : fail_output(output, err);
}

/* Whether all could be written so far; if not, errno says why. A write that failed long ago is
 * tried again for that. */
static bool is_written(FILE *file)
{
    if (!ferror(file))
        return fflush(file) == 0;
    clearerr(file);
    errno = EIO;
    if (putc('\n', file) != EOF && fflush(file) == 0)
        errno = EIO;
    return false;
}

int output_commit(struct output *output, struct error *err)
{
    if (!is_written(output->file))
        return fail_output(output, err);
    if (!output->path)
        return 0;
    FILE *file = output->file;
    output->file = NULL;
    if (fclose(file) || (output->temporary && rename(output->temporary, output->path)))
        return fail_output(output, err);
    partial_file_end();
    free(output->temporary);
    output->temporary = NULL;
    return 0;
}

void output_abandon(struct output *output)
{
    if (output->file && output->path)
        fclose(output->file);
    output->file = NULL;
    if (output->temporary)
        unlink(output->temporary);
    partial_file_end();
    free(output->temporary);
    output->temporary = NULL;
}

int export_begin(struct export *export, struct report *report, const char *const *paths, int count,
                 struct error *err)
{
    *export = (struct export){.report = report, .paths = paths, .path_count = count};
    export->not_checked_count = not_checked_find(report->trace, &export->not_checked);
    if (export->not_checked_count >= 0 && report->is_by_host)
        export->not_checked_count =
            not_checked_add_by_host(&export->not_checked, export->not_checked_count);
    return export->not_checked_count < 0 ? error_memory(err, "can't write the export") : 0;
}

void export_end(struct export *export)
{
    not_checked_free(export->not_checked, export->not_checked_count);
}

const struct export_format export_formats[] = {
#define EXPORT(name, extensions, what) {#name, extensions, what, export_##name},
#include "cmd/export/formats.def"
#undef EXPORT
    {0},
};

const struct export_format *export_format_find(const char *name)
{
    for (const struct export_format *format = export_formats; format->name; format++)
        if (!strcmp(format->name, name))
            return format;
    return NULL;
}
