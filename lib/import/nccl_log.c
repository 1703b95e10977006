/* nccl_log.c: reads logs of jobs that ran with NCCL_DEBUG, and what PyTorch's watchdog left in
 * them.
 *
 * One pass. Processes are known by host and pid, communicators by the pointers that NCCL prints,
 * from the line that makes one to the line that ends it: NCCL gives out pointers again. NCCL 2.16
 * and later print a commId that is the same on all ranks. What has none waits for the end of the
 * file (log_unnamed.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_event.h"
#include "lib/import/log_job.h"
#include "lib/import/log_line.h"
#include "lib/import/log_torch.h"

enum { SNIFF_LINES = 2000 };

/* "... [repeated 7x across cluster]". */
static bool is_repeated_line(const struct log_line *line)
{
    static const char end[] = "x across cluster]";
    size_t length = sizeof end - 1;
    return line->message_bytes > length &&
           !memcmp(line->message + line->message_bytes - length, end, length);
}

static int import_log_line(struct log_job *job, const struct log_line *line)
{
    struct log_event event;
    struct log_process *process = log_job_process(job, line);
    int version = log_version_of(line->message, line->message_bytes);
    if (!process)
        return -1;
    job->repeated += is_repeated_line(line);
    if (line->level == LOG_WARN)
        return log_job_warning(job, process, line);
    if (version)
        return log_job_version(job, process, version);
    if (line->level == LOG_CALL)
        log_event_of_call(line->message, line->message_bytes, &event);
    else
        log_event_of_message(line->message, line->message_bytes, &event);
    return event.kind == LOG_EVENT_NONE ? 0 : log_job_event(job, process, line, &event);
}

static int read_log(struct import *import, struct import_input *input, struct error *err)
{
    struct log_job job;
    size_t bytes;
    char *text;
    int result = 0;
    log_job_begin(&job, import, input);
    while (result == 0 && (text = input_line(input, &bytes, err))) {
        struct log_line line;
        struct watchdog_line watchdog;
        size_t offset = 0;
        bool any = false;
        while (result == 0 && log_line_next(text, bytes, &offset, &line)) {
            result = import_log_line(&job, &line);
            any = true;
        }
        if (any)
            continue;
        log_job_time(&job, text, bytes);
        if (watchdog_parse(text, bytes, &watchdog)) {
            watchdog.time_ns = torch_line_time(text, input_modified_ns(input));
            result = log_job_watchdog(&job, text, bytes, &watchdog);
        }
    }
    if (err->text[0])
        error_prefix(err, "%s:%llu", input_path(input),
                     (unsigned long long)input_line_number(input));
    if (log_job_end(&job) || result)
        return -1;
    return err->text[0] ? -1 : 0;
}

/* A log holds anything: what counts is a line of NCCL's or of the watchdog's near its beginning. */
static int sniff_log(const struct import_head *head)
{
    const char *at = head->bytes, *end = head->bytes + head->count;
    struct watchdog_line watchdog;
    struct log_line line;
    for (int lines = 0; at < end && lines < SNIFF_LINES; lines++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = newline ? (size_t)(newline - at) : (size_t)(end - at), offset = 0;
        char copy[4096];
        size_t taken = bytes < sizeof copy ? bytes : sizeof copy - 1;
        memcpy(copy, at, taken);
        copy[taken] = '\0';
        if (log_line_next(copy, taken, &offset, &line))
            return 90;
        if (watchdog_parse(copy, taken, &watchdog))
            return 80;
        at += bytes + 1;
    }
    return 0;
}

const struct import_source import_source_nccl_log = {
    .name = "nccl-log",
    .title = "NCCL log",
    .lacks = LACKS_STATE | LACKS_CUDA | LACKS_STACK | LACKS_MARKS | LACKS_PAYLOAD | LACKS_END,
    .sniff = sniff_log,
    .read = read_log,
};
