/* attach_outputs.c: the end of what the ranks of a running job have printed, where their standard
 * output or error is a file; and the kernel's log since the job began. */
#include "cmd/attach/attach_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/array.h"

enum {
    TAIL_BYTES = 1 << 20,
    COPIED_BYTES = 1 << 16,
    /* Of a message in /dev/kmsg, at most (Documentation/ABI/testing/dev-kmsg). */
    KERNEL_BYTES = 8192
};

/* --- what ranks print --- */

struct rank_output {
    dev_t device;
    ino_t inode;
    int pid, fd, rank; /* rank -1: several write there */
};

struct rank_outputs {
    struct rank_output *output;
    int count;
};

static void add_output(struct rank_outputs *outputs, int pid, int fd, int rank)
{
    char path[64];
    struct stat file;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    if (stat(path, &file) || !S_ISREG(file.st_mode) || !file.st_size)
        return;
    for (int i = 0; i < outputs->count; i++)
        if (outputs->output[i].device == file.st_dev && outputs->output[i].inode == file.st_ino) {
            if (outputs->output[i].rank != rank)
                outputs->output[i].rank = -1;
            return;
        }
    if (ARRAY_ADD(outputs->output, outputs->count))
        outputs->output[outputs->count++] = (struct rank_output){
            .device = file.st_dev, .inode = file.st_ino, .pid = pid, .fd = fd, .rank = rank};
}

/* From a line's beginning on. */
static void copy_tail(int from, FILE *to)
{
    static char piece[COPIED_BYTES];
    off_t end = lseek(from, 0, SEEK_END), at = end > TAIL_BYTES ? end - TAIL_BYTES : 0;
    bool is_cut = at > 0;
    for (ssize_t got; (got = pread(from, piece, sizeof piece, at)) > 0; at += got) {
        const char *begin = is_cut ? memchr(piece, '\n', (size_t)got) : piece;
        if (begin)
            fwrite(begin, 1, (size_t)(piece + got - begin), to);
        is_cut &= !begin;
    }
}

static bool copy_output(struct attach_sources *sources, const struct rank_output *output,
                        int number)
{
    char path[64], name[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", output->pid, output->fd);
    if (output->rank >= 0) /* import sees the rank in the name */
        snprintf(name, sizeof name, "rank_%d.%d.log", output->rank, output->fd);
    else
        snprintf(name, sizeof name, "output.%d.log", number);
    int from = open(path, O_RDONLY | O_CLOEXEC);
    FILE *to = from >= 0 ? attach_open_own(sources, name) : NULL;
    if (to)
        copy_tail(from, to);
    if (from >= 0)
        close(from);
    return to && !fclose(to);
}

/* Who started the ranks prints beside them. */
void attach_read_outputs(struct attach_sources *sources, const struct live_job *job)
{
    struct rank_outputs outputs = {0};
    int read = 0;
    for (int i = 0; i < job->ranks; i++)
        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && !job->rank[i].is_gone; fd++) {
            add_output(&outputs, job->rank[i].process.pid, fd, job->rank[i].rank);
            add_output(&outputs, job->rank[i].process.parent, fd, -1);
        }
    for (int i = 0; i < outputs.count; i++)
        read += copy_output(sources, &outputs.output[i], i);
    if (read)
        text_add(&sources->read, "the end of what the ranks print (%d %s)\n", read,
                 read == 1 ? "file" : "files");
    else
        text_add(&sources->absent,
                 "what the ranks print (it goes to no file that may be read; import reads it "
                 "where it is kept)\n");
    free(outputs.output);
}

/* --- the kernel's log --- */

/* Of "6,339,5140900,-;NVRM: Xid ...": microseconds since the kernel started. 0: it has none. */
static unsigned long long record_time_us(const char *record)
{
    unsigned long long time_us;
    return sscanf(record, "%*u,%*u,%llu", &time_us) == 1 && strchr(record, ';') ? time_us : 0;
}

/* As dmesg prints it. */
static void write_kernel_record(const char *record, FILE *to)
{
    unsigned long long time_us = record_time_us(record);
    const char *text = strchr(record, ';') + 1;
    fprintf(to, "[%5llu.%06llu] %.*s\n", time_us / 1000000, time_us % 1000000,
            (int)strcspn(text, "\n"), text);
}

/* When the first of the ranks was started, in microseconds since the kernel was. */
static uint64_t job_start_us(const struct live_job *job)
{
    uint64_t first = UINT64_MAX;
    for (int i = 0; i < job->ranks; i++)
        for (int k = 0; k < job->found_count; k++)
            if (job->found[k].pid == job->rank[i].process.pid && job->found[k].start_ticks < first)
                first = job->found[k].start_ticks;
    return first == UINT64_MAX ? first : first * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Others run on this host, too: of what the kernel says of single processes, that of ranks, and
 * where a rank is gone what memory was short for. */
static bool is_of_attached_job(const struct live_job *job, const char *record)
{
    static const char *const hardware[] = {"NVRM", "Xid", "nvidia", "pcieport", "mlx5", "mlx4"};
    char pid[32];
    bool some_gone = false;
    for (size_t i = 0; i < sizeof hardware / sizeof *hardware; i++)
        if (strstr(record, hardware[i]))
            return true;
    for (int i = 0; i < job->ranks; i++) {
        some_gone |= job->rank[i].is_gone;
        snprintf(pid, sizeof pid, "[%d]", job->rank[i].process.pid);
        if (!job->rank[i].is_gone && strstr(record, pid))
            return true;
    }
    return some_gone && strstr(record, "Killed process ");
}

void attach_read_kernel_log(struct attach_sources *sources, const struct live_job *job)
{
    static char record[KERNEL_BYTES + 1];
    int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), records = 0;
    FILE *to = NULL;
    uint64_t since_us = job_start_us(job);
    for (ssize_t got = 1; log >= 0 && got > 0;) {
        got = read(log, record, KERNEL_BYTES);
        while (got < 0 && errno == EPIPE) /* it was overwritten: the next one */
            got = read(log, record, KERNEL_BYTES);
        record[got > 0 ? got : 0] = '\0';
        if (record_time_us(record) <= since_us || !is_of_attached_job(job, record))
            continue;
        to = to ? to : attach_open_own(sources, "kernel.log");
        if (!to)
            break;
        write_kernel_record(record, to);
        records++;
    }
    if (log < 0)
        text_add(&sources->absent, "the kernel's log (%s; root or CAP_SYSLOG may read it)\n",
                 strerror(errno));
    else
        text_add(&sources->read, "the kernel's log (%d %s of it since the job began)\n", records,
                 records == 1 ? "message" : "messages");
    if (log >= 0)
        close(log);
    if (to)
        fclose(to);
}
