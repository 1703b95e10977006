/* reading.c: the process that reads traces for a server. */
#include "cmd/serve/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/command_traces.h"
#include "cmd/export/export.h"

enum {
    BELOW_JOB = 5,    /* a third of the job's share (sched(7)); at 19 a busy host starves it */
    FILES_MOST = 1024 /* twice as many as a server has connections: the kernel gives low numbers */
};

/* The format of each part (cmd/export/formats.def). */
static int (*const write_part[READING_PARTS])(const struct export *export, struct error *err) = {
    [READING_PAGE] = export_html,
    [READING_REPORT] = export_jsonl,
    [READING_METRICS] = export_prometheus,
};

static int write_parts(const struct reading *reading, struct export *export, struct error *err)
{
    for (int i = 0; i < READING_PARTS; i++) {
        if (!(export->out = fdopen(reading->part[i], "w")))
            return error_memory(err, "can't show the trace");
        if (write_part[i](export, err))
            return -1;
        if (fclose(export->out))
            return error_set(err, "can't show the trace: %s", strerror(errno));
    }
    return 0;
}

static int read_paths(const struct reading *reading, const struct reading_options *options,
                      const struct command_traces *traces, int count, struct error *err)
{
    struct report report;
    struct choice choice;
    struct export export;
    const char *const *paths = (const char *const *)options->paths;
    if (choice_load(&choice, &options->choice, err))
        return -1;
    const struct report_options how = {.hang_after_ns = (uint64_t)(options->hang_after_s * 1e9),
                                       .hosts = HOSTS_MERGED,
                                       .choice = &choice,
                                       .is_anew = true, /* speed is not kept */
                                       .traces = traces};
    if (report_load(&report, paths, count, &how, err) ||
        export_begin(&export, &report, paths, count, err))
        return -1; /* the process ends: nothing is freed */
    export.is_live = true;
    return write_parts(reading, &export, err);
}

void reading_leave_server(void)
{
    struct stat status;
    for (int fd = STDERR_FILENO + 1; fd < FILES_MOST; fd++)
        if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode))
            close(fd);
}

static void read_traces(const struct reading *reading, const struct reading_options *options,
                        pid_t parent)
{
    struct command_traces traces;
    struct error err = {{0}};
    int count = options->count, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    reading_leave_server();
    if (null >= 0) /* progress is of no use to anyone */
        dup2(null, STDERR_FILENO);
    setpriority(PRIO_PROCESS, 0, BELOW_JOB);
    int result = command_traces_open(&traces, options->paths, &count, &err);
    if (!result) {
        result = read_paths(reading, options, &traces, count, &err);
        command_traces_close(&traces);
    }
    if (result && write(reading->end, err.text, strlen(err.text)) < 0)
        _exit(2);
    _exit(result ? 1 : 0);
}

static void close_parts(struct reading *reading)
{
    for (int i = 0; i < READING_PARTS; i++)
        if (reading->part[i] >= 0)
            close(reading->part[i]);
    if (reading->end >= 0)
        close(reading->end);
    *reading = (struct reading){0};
}

int reading_begin(struct reading *reading, const struct reading_options *options, struct error *err)
{
    int ends[2] = {-1, -1};
    pid_t parent = getpid();
    bool is_open = pipe2(ends, O_CLOEXEC) == 0;
    reading->end = ends[0];
    for (int i = 0; i < READING_PARTS; i++) {
        reading->part[i] = memfd_create("ddpcheck", MFD_CLOEXEC);
        is_open &= reading->part[i] >= 0;
    }
    reading->pid = is_open ? fork() : -1;
    if (reading->pid == 0) {
        reading->end = ends[1];
        read_traces(reading, options, parent);
    }
    int number = errno;
    if (ends[1] >= 0)
        close(ends[1]);
    if (reading->pid > 0)
        return 0;
    close_parts(reading);
    return error_set(err, "can't read the trace: %s", strerror(number));
}

static int take_text(int fd, struct reading_text *text)
{
    struct stat status;
    if (fstat(fd, &status) < 0 || !(text->data = malloc((size_t)status.st_size + 1)))
        return -1;
    for (text->bytes = 0; text->bytes < (size_t)status.st_size;) {
        ssize_t bytes = pread(fd, text->data + text->bytes, (size_t)status.st_size - text->bytes,
                              (off_t)text->bytes);
        if (bytes <= 0)
            return -1;
        text->bytes += (size_t)bytes;
    }
    return 0;
}

int reading_take(struct reading *reading, struct reading_text text[READING_PARTS],
                 struct error *err)
{
    int status, result = 0;
    ssize_t bytes = read(reading->end, err->text, sizeof err->text - 1);
    err->text[bytes > 0 ? bytes : 0] = '\0';
    waitpid(reading->pid, &status, 0);
    if (WIFSIGNALED(status))
        result = error_set(err, "reading the trace was ended by signal %d (%s)", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        result = *err->text ? -1 : error_set(err, "the trace can't be read");
    memset(text, 0, READING_PARTS * sizeof *text);
    for (int i = 0; !result && i < READING_PARTS; i++)
        if (take_text(reading->part[i], &text[i]) < 0)
            result = error_memory(err, "can't show the trace");
    for (int i = 0; result && i < READING_PARTS; i++)
        free(text[i].data);
    close_parts(reading);
    return result;
}

void reading_stop(struct reading *reading)
{
    if (!reading->pid)
        return;
    kill(reading->pid, SIGKILL);
    waitpid(reading->pid, NULL, 0);
    close_parts(reading);
}
