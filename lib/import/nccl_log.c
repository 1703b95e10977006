/* nccl_log.c: reads logs of jobs that ran with NCCL_DEBUG, and what PyTorch's watchdog left in
 * them.
 *
 * One pass over all files. Processes are known by host and pid, communicators by the pointers that
 * NCCL prints, from the line that makes one to the line that ends it: NCCL gives out pointers
 * again. NCCL 2.16 and later print a commId that is the same on all ranks. What has none waits for
 * the end of the last file (log_unnamed.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/input.h"
#include "lib/import/log_event.h"
#include "lib/import/log_job.h"
#include "lib/import/log_line.h"
#include "lib/import/log_messages.h"
#include "lib/import/log_ras.h"
#include "lib/import/log_stack.h"
#include "lib/import/log_torch.h"
#include "lib/import/log_unwrap.h"

enum { SNIFF_LINES = 2000, WRAPPED_PIECES = 8 };

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

/* 1: the line said something; 0; -1 when memory is short. */
static int import_message_line(struct log_job *job, const char *text, size_t bytes)
{
    static int (*const readers[])(struct log_job *, const char *, size_t) = {
        log_reports_line, log_ras_line,    log_stack_line,   log_stalls_line,
        log_elastic_line, log_python_line, log_messages_line};
    struct watchdog_line watchdog;
    int result = 0;
    if (watchdog_parse(text, bytes, &watchdog)) {
        watchdog.time_ns = torch_line_time(text, job->modified_ns);
        return log_job_watchdog(job, text, bytes, &watchdog) ? -1 : 1;
    }
    for (size_t i = 0; !result && i < sizeof readers / sizeof *readers; i++)
        result = readers[i](job, text, bytes);
    return result;
}

/* What a line contains whose rest a terminal may have put on the next one, and what the rest does.
 */
static const struct wrapped_text {
    const char *begin, *rest;
} wrapped_texts[] = {
    {"Watchdog caught collective operation timeout", "before timing out"},
    {"detected by watchdog at work", "last completed"},
    {"Detected mismatch between collectives on ranks", "but Rank"},
};

struct log_wrapped {
    int pieces;
    size_t bytes;
    const char *rest;
    char text[4096];
};

/* Keeps a line that was broken, and reads it when its rest has come. The pieces are read as lines,
 * too. */
static int join_wrapped(struct log_job *job, const char *text)
{
    struct log_wrapped *wrapped = job->wrapped;
    size_t bytes = strlen(text);
    for (size_t i = 0; i < sizeof wrapped_texts / sizeof *wrapped_texts; i++) {
        if (!strstr(text, wrapped_texts[i].begin))
            continue;
        if (strstr(text, wrapped_texts[i].rest))
            return 0;
        if (!wrapped && !(wrapped = job->wrapped = malloc(sizeof *wrapped)))
            return -1;
        *wrapped = (struct log_wrapped){.rest = wrapped_texts[i].rest};
        break;
    }
    if (!wrapped || !wrapped->rest)
        return 0;
    if (++wrapped->pieces > WRAPPED_PIECES || wrapped->bytes + bytes >= sizeof wrapped->text) {
        wrapped->rest = NULL;
        return 0;
    }
    memcpy(wrapped->text + wrapped->bytes, text, bytes + 1);
    wrapped->bytes += bytes;
    if (!strstr(wrapped->text, wrapped->rest))
        return 0;
    wrapped->rest = NULL;
    int result = import_message_line(job, wrapped->text, wrapped->bytes);
    job->found += result > 0;
    return result < 0 ? -1 : 0;
}

static int import_text_line(struct log_job *job, char *text, size_t bytes)
{
    struct log_line line;
    size_t offset = 0;
    int result = 0;
    bool any = false;
    while (result == 0 && log_line_next(text, bytes, &offset, &line)) {
        result = import_log_line(job, &line);
        job->found++;
        any = true;
    }
    if (any || result)
        return result;
    log_job_time(job, text, bytes);
    result = import_message_line(job, text, bytes);
    job->found += result > 0;
    return result < 0 ? -1 : join_wrapped(job, text);
}

/* One line of the file may hold several: of a record, or with cursor returns between. */
static int import_text_lines(struct log_job *job, char *text, size_t bytes)
{
    int result = 0;
    for (char *end = text + bytes; text <= end && !result;) {
        size_t length = strcspn(text, "\r\n");
        bool ends_early = text + length < end && !text[length]; /* a NUL inside */
        if (ends_early)
            length = (size_t)(end - text);
        text[length] = '\0';
        size_t number = job->is_numbered ? log_number_bytes(text) : 0;
        result = import_text_line(job, text + number, length - number);
        text += length + 1;
    }
    return result;
}

static int import_file_line(struct log_job *job, struct log_unwrap *unwrap, char *text,
                            size_t bytes)
{
    char *lines = log_unwrap(unwrap, text, &bytes);
    if (!lines)
        return unwrap->no_memory ? -1 : 0;
    return import_text_lines(job, lines, bytes);
}

static int import_rest(struct log_job *job, struct log_unwrap *unwrap)
{
    size_t bytes;
    char *rest = log_unwrap_rest(unwrap, &bytes);
    return rest ? import_text_lines(job, rest, bytes) : 0;
}

static int read_log(struct import *import, struct import_input *input, struct error *err)
{
    void **state = import_state(import);
    struct log_job *job = *state ? *state : (*state = calloc(1, sizeof *job));
    struct log_unwrap unwrap = {0};
    size_t bytes;
    char *text;
    if (!job || log_job_begin_file(job, import, input))
        return error_set(err, "%s: memory is short", input_path(input));
    struct import_head head;
    input_head(input, &head);
    job->is_numbered = log_is_numbered(head.bytes, head.count);
    int result = 0;
    while (result == 0 && (text = input_line(input, &bytes, err)))
        result = import_file_line(job, &unwrap, text, bytes);
    if (result == 0)
        result = import_rest(job, &unwrap);
    log_unwrap_free(&unwrap);
    if (err->text[0])
        error_prefix(err, "%s:%llu", input_path(input),
                     (unsigned long long)input_line_number(input));
    else if (result == 0 && !job->found)
        result = error_set(err,
                           "%s: its beginning matches no format that can be imported, and as a log "
                           "it has no line of NCCL, PyTorch or a launcher",
                           input_path(input));
    log_job_end_file(job);
    return result || err->text[0] ? -1 : 0;
}

static int end_logs(struct import *import)
{
    void **state = import_state(import);
    int result = *state ? log_job_end(*state) : 0;
    free(*state);
    *state = NULL;
    return result;
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
    .reads_any_text = true,
    .read = read_log,
    .end = end_logs,
};
