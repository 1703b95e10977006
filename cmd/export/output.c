/* output.c: writes an export to standard output or atomically to a file. */
#include "cmd/export/output.h"

#include <errno.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    int fd = mkstemp(output->temporary);
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
    free(output->temporary);
    output->temporary = NULL;
}
