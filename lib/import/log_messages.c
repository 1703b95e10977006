/* log_messages.c: messages of a job's log that say what went wrong, by a table of what they
 * contain. */
#include "lib/import/log_messages.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_phrases.h"
#include "lib/import/scan.h"

enum { MESSAGES_MAX = 512, TODO_BYTES = 400, FILE_BYTES = 64 };

struct log_message {
    struct log_speaker speaker;
    int how;
    const char *who, *todo;
    char text[MESSAGE_BYTES];
    uint64_t time_ns;
    bool rank_is_of_file;  /* its name says it: perhaps a local one */
    char file[FILE_BYTES]; /* the end of its path, then */
};

static const char todo_last[] =
    "Run again with NCCL_DEBUG=WARN: the line that NCCL prints before this says why.";

struct log_messages {
    struct log_message *message;
    uint32_t count;
    struct log_speaker last_error; /* its next line is what NCCL said last */
    bool wants_last_error;
};

/* "node1/attempt_0/2/stderr.log" of a longer path. */
static void copy_path_end(char *to, const char *path)
{
    size_t bytes = strlen(path);
    const char *end = bytes < FILE_BYTES ? path : strchr(path + bytes - FILE_BYTES + 1, '/');
    snprintf(to, FILE_BYTES, "%s", end ? end + (end != path) : path + bytes - FILE_BYTES + 1);
}

int log_messages_add(struct log_job *job, struct log_speaker speaker, int how, const char *who,
                     const char *text, const char *todo)
{
    struct log_messages *messages = job->state[LOG_MESSAGES];
    char file[FILE_BYTES] = "";
    bool rank_is_of_file = speaker.rank < 0 && job->file_rank >= 0 && job->file_rank_is_name;
    if (speaker.rank < 0)
        speaker.rank = job->file_rank;
    if (rank_is_of_file)
        copy_path_end(file, input_path(job->input));
    for (uint32_t i = 0; i < messages->count; i++)
        if (messages->message[i].speaker.rank == speaker.rank &&
            !strcmp(messages->message[i].file, file) &&
            !strncmp(messages->message[i].text, text, MESSAGE_BYTES - 1))
            return 1;
    if (messages->count == MESSAGES_MAX)
        return 1;
    if (!messages->message &&
        !(messages->message = malloc(MESSAGES_MAX * sizeof *messages->message)))
        return -1;
    struct log_message *message = &messages->message[messages->count++];
    *message = (struct log_message){.speaker = speaker,
                                    .how = how,
                                    .who = who,
                                    .todo = todo,
                                    .time_ns = job->file_ns,
                                    .rank_is_of_file = rank_is_of_file};
    memcpy(message->file, file, sizeof file);
    size_t used = 0;
    for (; *text && used + 1 < sizeof message->text; text++)
        message->text[used++] = (unsigned char)*text < ' ' ? ' ' : *text;
    message->text[used] = '\0';
    return 1;
}

void log_messages_earlier(struct log_job *job, int rank, uint64_t by_ns)
{
    const struct log_messages *messages = job->state[LOG_MESSAGES];
    for (uint32_t i = 0; i < messages->count; i++)
        if (messages->message[i].speaker.rank == rank && messages->message[i].time_ns > by_ns)
            messages->message[i].time_ns -= by_ns;
}

void log_messages_until(struct log_job *job, uint64_t last_ns)
{
    const struct log_messages *messages = job->state[LOG_MESSAGES];
    for (uint32_t i = 0; i < messages->count; i++)
        if (messages->message[i].time_ns > last_ns)
            messages->message[i].time_ns = last_ns;
}

const char *log_messages_exception(const struct log_job *job, int rank, uint64_t from_ns,
                                   uint64_t until_ns)
{
    const struct log_messages *messages = job->state[LOG_MESSAGES];
    for (uint32_t i = 0; i < messages->count; i++) {
        const struct log_message *message = &messages->message[i];
        bool is_rank = message->speaker.rank == rank &&
                       !(message->rank_is_of_file && job->ranks_are_local);
        bool is_then = !message->time_ns ||
                       (message->time_ns >= from_ns && message->time_ns <= until_ns);
        if (is_rank && is_then && message->how == SAID_ERROR && !strcmp(message->who, "Python"))
            return message->text;
    }
    return NULL;
}

static const char last_error[] = "Last error:";

/* It was a peer's end that NCCL saw last. */
static int add_last_error(struct log_job *job, struct log_speaker speaker, const char *text)
{
    bool is_of_peer = strstr(text, "remote peer") || strstr(text, "by peer");
    return log_messages_add(job, speaker, is_of_peer ? LOG_SAID_WAITED : SAID_ERROR,
                            "NCCL's last error", text, todo_last);
}

/* NCCL's stands before the line that says it. */
static int last_error_line(struct log_job *job, struct log_speaker speaker, const char *text)
{
    struct log_messages *messages = job->state[LOG_MESSAGES];
    const char *found = scan_find(text, last_error);
    if (found) {
        found += strlen(last_error);
        while (*found == ' ')
            found++;
        messages->wants_last_error = !*found;
        messages->last_error = speaker;
        return *found ? add_last_error(job, speaker, found) : 1;
    }
    if (!messages->wants_last_error || messages->last_error.rank != speaker.rank)
        return 0;
    messages->wants_last_error = false;
    const char *behind = *text == '[' ? strstr(text, "]: ") : NULL;
    return add_last_error(job, speaker, behind ? behind + 3 : text);
}

/* The world size, as frameworks print it. */
static void learn_world(struct log_job *job, const char *text)
{
    static const char *const templates[] = {
        "MEMBER: {r:}/{i:world}",
        "dist_world_size={i:world}",
        "WORLD_SIZE={i:world}",
        "WORLD_SIZE: {i:world}",
        "global_world_sizes=[{i:world}",
        "All distributed processes registered. Starting with {i:world}",
    };
    struct scanned found;
    int64_t world = -1;
    for (size_t i = 0; world < 0 && i < sizeof templates / sizeof *templates; i++)
        if (scan(text, templates[i], &found))
            world = scanned_number(&found, "world", -1);
    if (world > job->world && world < 1 << 20)
        job->world = (int)world;
}

/* "python[4711]: segfault at", "nvidia 0000:41:00.0: PCIe Bus Error": whose it is is part of what
 * the kernel says. */
static const char *begin_of_message(const char *line, const char *text)
{
    const char *begin = text - 1; /* of the word before the blank */
    if (text - line < 3 || strncmp(text - 2, ": ", 2) != 0)
        return text;
    while (begin > line && begin[-1] != ' ' && begin[-1] != '\t')
        begin--;
    return *begin == '[' || !strncmp(begin, "kernel: ", strlen("kernel: ")) ? text : begin;
}

static int read_message_line(struct log_job *job, const char *text, size_t bytes)
{
    const struct log_messages *messages = job->state[LOG_MESSAGES];
    learn_world(job, text);
    struct scanned found;
    bool is_last_error = messages->wants_last_error || scan_find(text, last_error);
    const struct log_phrase *phrase = log_phrase_find(text, &found);
    if (!phrase && !is_last_error)
        return 0;
    struct log_speaker speaker = log_speaker_of(text, bytes);
    int result = is_last_error ? last_error_line(job, speaker, text) : 0;
    if (result || !phrase)
        return result;
    speaker.rank = torch_job_rank(text, speaker.rank);
    speaker.rank = (int)scanned_number(&found, "rank", speaker.rank);
    bool is_kernel = phrase->who == log_who_kernel;
    const char *said = is_kernel ? begin_of_message(text, found.begin) : found.begin;
    return log_messages_add(job, speaker, phrase->how, phrase->who,
                            phrase->says ? phrase->says : said, phrase->todo);
}

/* --- the end --- */

static int speaker_process(struct log_job *job, const struct log_message *message)
{
    struct log_speaker speaker = message->speaker;
    const struct log_process *known = NULL;
    if (speaker.rank >= 0)
        known = log_job_process_of_rank(job, speaker.rank);
    if (known)
        return log_process_index(known);
    struct import_process process = import_process_new();
    process.rank = speaker.rank;
    process.key = speaker.rank >= 0 ? "watchdog" : "not named";
    process.file = job->path;
    process.title = "what PyTorch printed";
    process.lacks = LACKS_MESSAGES;
    if (message->how == SAID_TIMEOUT) { /* the process of log_groups.c that its calls belong to */
        process.key = "fingerprint";
        process.lacks &= ~(uint32_t)LACKS_DATATYPE;
    }
    return import_process(job->import, &process);
}

/* Something else that is known says why the process ended, or what it waited for. */
static bool is_outdone(const struct log_messages *messages, const struct log_message *message)
{
    int rank = message->speaker.rank;
    for (const struct log_message *before = messages->message; before < message; before++)
        if (rank >= 0 && message->how == LOG_SAID_WAITED && before->how == message->how &&
            before->speaker.rank == rank)
            return true;
    for (uint32_t i = 0; i < messages->count; i++) {
        const struct log_message *other = &messages->message[i];
        bool is_same = message->how == LOG_SAID_WAITED || rank < 0 || other->speaker.rank < 0 ||
                       other->speaker.rank == rank;
        if (is_same && other->how >= SAID_ERROR && other->how < message->how)
            return true;
    }
    return false;
}

/* The exception that says again what stood in the log as a line of its own. */
static bool is_said_twice(const struct log_messages *messages, const struct log_message *message)
{
    enum { SAME_LETTERS = 40 };
    char begin[SAME_LETTERS + 1];
    bool is_twice = false;
    for (uint32_t i = 0; i < messages->count && !strcmp(message->who, "Python"); i++) {
        const struct log_message *other = &messages->message[i];
        snprintf(begin, sizeof begin, "%s", other->text);
        is_twice |= other->how == SAID_ERROR && strcmp(other->who, "Python") != 0 &&
                    other->speaker.rank == message->speaker.rank && strstr(message->text, begin);
    }
    return is_twice;
}

/* The strongest that is known stays an error. */
static enum said said_how(const struct log_messages *messages, const struct log_message *message)
{
    enum said how = (enum said)message->how;
    if (how > SAID_NAMED)
        how = is_outdone(messages, message) ? SAID_NOTE : SAID_ERROR;
    if (is_said_twice(messages, message))
        how = SAID_NOTE;
    bool is_named = message->speaker.rank < 0 && message->speaker.source == LOG_NOBODY.source;
    return how == SAID_ERROR && is_named ? SAID_NAMED : how;
}

static int end_messages(struct log_job *job)
{
    const struct log_messages *messages = job->state[LOG_MESSAGES];
    /* What stands before the first line with a time was first. */
    uint64_t else_ns = job->first_ns ? job->first_ns : LOG_UNDATED_NS;
    int result = 0;
    for (uint32_t i = 0; !result && i < messages->count; i++) {
        struct log_message *message = &messages->message[i];
        char text[MESSAGE_BYTES + FILE_BYTES + TODO_BYTES];
        bool is_local = message->rank_is_of_file && job->ranks_are_local;
        if (is_local)
            message->speaker = LOG_NOBODY;
        int process = speaker_process(job, message);
        bool names_rank = !strncmp(message->text, "rank ", strlen("rank "));
        snprintf(text, sizeof text, "%s%s%s%s%s%s", is_local ? message->file : "",
                 is_local ? ": " : "", is_local && names_rank ? "local " : "", message->text,
                 *message->todo ? "\n" : "", message->todo);
        enum said how = said_how(messages, message);
        result = -1;
        if (process >= 0)
            result = import_said(job->import, process, how, message->who, text,
                                 message->time_ns ? message->time_ns : else_ns);
    }
    free(messages->message);
    return result;
}

const struct log_reader log_messages = {sizeof(struct log_messages), read_message_line,
                                        end_messages};
