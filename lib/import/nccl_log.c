/* nccl_log.c: reads logs of jobs that ran with NCCL_DEBUG, and what PyTorch's watchdog left in
 * them.
 *
 * One pass over all files. Processes are known by host and pid, communicators by the pointers that
 * NCCL prints, from the line that makes one to the line that ends it: NCCL gives out pointers
 * again. NCCL 2.16 and later print a commId that is the same on all ranks. What has none waits for
 * the end of the last file (log_unnamed.c). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/input.h"
#include "lib/import/log_event.h"
#include "lib/import/log_files.h"
#include "lib/import/log_job.h"
#include "lib/import/log_line.h"
#include "lib/import/log_records.h"
#include "lib/import/log_torch.h"
#include "lib/import/log_unwrap.h"
#include "lib/import/scan.h"

enum { SNIFF_LINES = 2000, WRAPPED_PIECES = 16 };

static const struct log_reader *const log_readers[] = {
#define LOG_READER(number, reader) &reader,
#include "lib/import/log_readers.def"
#undef LOG_READER
};

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
    size_t bytes, last; /* last: of the last piece */
    char text[4096];
};

/* Only the first piece has the head of PyTorch's lines. */
static bool begins_wrapped(const char *text)
{
    static const char *const heads[] = {"[rank", "ProcessGroup", "what():", "Error: Detected"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (scan_find(text, heads[i]))
            return true;
    for (size_t i = 0; i < sizeof wrapped_texts / sizeof *wrapped_texts; i++)
        if (scan_find(text, wrapped_texts[i].begin))
            return true;
    return false;
}

/* A text that needs the last piece; NULL: there is none. Where it ends with a number, the piece may
 * have only the first digits of it. */
static const char *joined_text(const struct log_wrapped *wrapped)
{
    for (size_t i = 0; i < sizeof wrapped_texts / sizeof *wrapped_texts; i++) {
        const char *begin = strstr(wrapped->text, wrapped_texts[i].begin);
        const char *rest = begin ? strstr(begin, wrapped_texts[i].rest) : NULL;
        const char *number = rest ? strpbrk(rest, "0123456789.") : NULL;
        if (number)
            rest = number + strspn(number, "0123456789");
        if (rest && rest >= wrapped->text + wrapped->bytes - wrapped->last)
            return begin;
    }
    return NULL;
}

/* Keeps a line that may have been broken, wherever that was, and reads it when its rest has come.
 * The pieces are read as lines, too. */
static int join_wrapped(struct log_job *job, const char *text)
{
    struct log_wrapped *wrapped = job->wrapped;
    size_t bytes = strlen(text);
    bool begins = begins_wrapped(text);
    bool is_open = wrapped && wrapped->pieces;
    if (!begins && !is_open)
        return 0;
    if (!wrapped && !(wrapped = job->wrapped = malloc(sizeof *wrapped)))
        return -1;
    /* "] Watchdog caught ..." goes on with what was before it. */
    bool has_head = strstr(text, "[rank") || strstr(text, "ProcessGroup");
    if (!is_open || has_head || wrapped->pieces >= WRAPPED_PIECES ||
        wrapped->bytes + bytes >= sizeof wrapped->text)
        *wrapped = (struct log_wrapped){0};
    if ((!begins && !wrapped->pieces) || bytes >= sizeof wrapped->text)
        return 0;
    memcpy(wrapped->text + wrapped->bytes, text, bytes + 1);
    wrapped->bytes += bytes;
    wrapped->last = bytes;
    if (!wrapped->pieces++ || !joined_text(wrapped))
        return 0;
    int result = log_job_line(job, wrapped->text, wrapped->bytes);
    if (!bytes || !isdigit((unsigned char)text[bytes - 1]))
        wrapped->pieces = 0;
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
    scan_line_begin(text, bytes);
    log_job_time(job, text, bytes);
    result = log_job_line(job, text, bytes);
    job->found += result > 0;
    result = result < 0 ? -1 : join_wrapped(job, text);
    scan_line_end();
    return result;
}

/* One line of the file may hold several: of a record, or with cursor returns between. */
static int import_text_lines(struct log_job *job, char *text, size_t bytes)
{
    int result = 0;
    char *end = text + bytes;
    do { /* a record may end with a newline, which is no empty line */
        size_t length = strcspn(text, "\r\n");
        bool ends_early = text + length < end && !text[length]; /* a NUL inside */
        if (ends_early)
            length = (size_t)(end - text);
        text[length] = '\0';
        size_t number = job->is_numbered ? log_number_bytes(text) : 0;
        result = import_text_line(job, text + number, length - number);
        text += length + 1;
    } while (text < end && !result);
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

/* A log that is read. */
struct log_reading {
    struct log_job *job;
    struct log_unwrap unwrap;
};

static int take_record(void *context, char *text, size_t bytes, bool is_first)
{
    struct log_reading *reading = context;
    if (is_first)
        reading->job->file_ns = 0;
    return import_file_line(reading->job, &reading->unwrap, text, bytes);
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
    struct log_reading reading = {.job = job};
    size_t bytes;
    char *text;
    if (job)
        job->readers = log_readers;
    struct import_head head;
    input_head(input, &head);
    if (!job || log_job_begin_file(job, import, input) || log_file_begin(job, &head))
        return error_memory(err, "can't read %s", input_path(input));
    job->is_numbered = log_is_numbered(head.bytes, head.count);
    bool is_document = log_is_document(&head);
    int result = is_document ? log_records_read(input, take_record, &reading, err) : 0;
    while (result == 0 && !is_document && (text = input_line(input, &bytes, err)))
        result = import_file_line(job, &reading.unwrap, text, bytes);
    if (result == 0)
        result = import_rest(job, &reading.unwrap);
    log_unwrap_free(&reading.unwrap);
    if (err->text[0] && is_document)
        error_prefix(err, "%s", input_path(input));
    else if (err->text[0])
        error_prefix(err, "%s:%llu", input_path(input),
                     (unsigned long long)input_line_number(input));
    bool is_strange = result == 0 && !err->text[0] && !job->found;
    log_job_end_file(job);
    if (is_strange)
        return IMPORT_NOTHING;
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
