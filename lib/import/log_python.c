/* log_python.c: Python tracebacks in a job's log: which rank raised what, and where.
 *
 * Lines of several ranks are mixed, so each writer has a traceback of its own. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_messages.h"

enum { TRACEBACKS_MAX = 64, PLACE_BYTES = 200 };

struct log_traceback {
    struct log_speaker speaker;
    size_t column;              /* where "Traceback" stood: what is before it is prefix */
    char place[PLACE_BYTES];    /* "train.py:120 (step)" of the last frame of the user's */
    char anywhere[PLACE_BYTES]; /* of the last frame */
    bool open;
    bool bare; /* its frames have no prefix, though its first line has: a logger printed it */
};

struct log_tracebacks {
    struct log_traceback traceback[TRACEBACKS_MAX];
    struct log_traceback *latest; /* the one that began last */
    uint32_t count, oldest;
};

/* What a launcher raises when its ranks have failed, or it was ended itself. */
static const char *const launchers[] = {"ChildFailedError", "SignalException", "CalledProcessError",
                                        NULL};
/* Exceptions that follow from what another rank, or the launcher, did. */
static const char *const consequences[] = {
    "KeyboardInterrupt",
    "ProcessExitedException",
    "SystemExit",
    "NCCL communicator was aborted",
    "Connection reset by peer",
    "Connection closed by peer",
    "Broken pipe",
    "Socket Timeout",
    "ActorDiedError",
    "RayTaskError",
    "EngineDeadError",
    NULL,
};

static const char todo_raised[] =
    "Fix what it raised; the other ranks then only waited for this one. Let an exception end the "
    "whole job, and let all ranks take the same way out.";
static const char todo_consequence[] =
    "As a rule a consequence: look for the rank that failed first.";

static struct log_traceback *find_traceback(struct log_job *job, struct log_speaker speaker)
{
    struct log_tracebacks *all = job->tracebacks;
    for (uint32_t i = 0; all && i < all->count; i++)
        if (all->traceback[i].open && all->traceback[i].speaker.rank == speaker.rank &&
            all->traceback[i].speaker.source == speaker.source)
            return &all->traceback[i];
    return NULL;
}

static int begin_traceback(struct log_job *job, struct log_speaker speaker, size_t column)
{
    if (!job->tracebacks && !(job->tracebacks = calloc(1, sizeof *job->tracebacks)))
        return -1;
    struct log_tracebacks *all = job->tracebacks;
    struct log_traceback *traceback = find_traceback(job, speaker);
    if (!traceback && all->count < TRACEBACKS_MAX)
        traceback = &all->traceback[all->count++];
    else if (!traceback)
        traceback = &all->traceback[all->oldest++ % TRACEBACKS_MAX];
    *traceback = (struct log_traceback){.speaker = speaker, .column = column, .open = true};
    all->latest = traceback;
    return 1;
}

/* The one that began last, where a line without any prefix must belong to it. */
static struct log_traceback *find_bare(struct log_job *job, struct log_speaker speaker)
{
    struct log_traceback *latest = job->tracebacks ? job->tracebacks->latest : NULL;
    if (!latest || !latest->open || speaker.rank >= 0 || speaker.source)
        return NULL;
    return latest->bare || !*latest->anywhere ? latest : NULL;
}

bool log_is_users_file(const char *path)
{
    static const char *const others[] = {"site-packages/", "dist-packages/", "/torch/", "<frozen",
                                         "/lib/python"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(path, others[i]))
            return false;
    return true;
}

/* `File "/home/me/train.py", line 120, in step`. */
static bool take_frame(struct log_traceback *traceback, const char *text)
{
    const char *file = strstr(text, "File \""), *end = file ? strchr(file + 6, '"') : NULL;
    char path[PLACE_BYTES], function[64] = "";
    if (!end || strncmp(end, "\", line ", 8) != 0)
        return false;
    text_copy_until(path, sizeof path, file + 6, "\"");
    const char *in = strstr(end, ", in ");
    if (in)
        text_copy_until(function, sizeof function, in + 5, "\r\n");
    const char *name = strrchr(path, '/');
    snprintf(traceback->anywhere, sizeof traceback->anywhere, "%s:%d", name ? name + 1 : path,
             atoi(end + 8));
    if (*function) {
        size_t used = strlen(traceback->anywhere);
        snprintf(traceback->anywhere + used, sizeof traceback->anywhere - used, " (%s)", function);
    }
    if (log_is_users_file(path))
        memcpy(traceback->place, traceback->anywhere, sizeof traceback->place);
    return true;
}

/* "RuntimeError: ...", "torch.distributed.DistBackendError: ...", "KeyboardInterrupt". */
static bool is_exception(const char *text)
{
    size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    if (!name || (text[name] && text[name] != ':' && !isspace((unsigned char)text[name])))
        return false;
    const char *last = text + name;
    while (last > text && last[-1] != '.')
        last--;
    return isupper((unsigned char)*last) && (text[name] == ':' || !text[name + 1]);
}

static bool contains_any(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strstr(text, *words))
            return true;
    return false;
}

static int end_traceback(struct log_job *job, struct log_traceback *traceback, const char *text)
{
    char what[MESSAGE_BYTES], exception[MESSAGE_BYTES / 2];
    const char *place = *traceback->place ? traceback->place : traceback->anywhere;
    int rank = traceback->speaker.rank >= 0 ? traceback->speaker.rank : job->file_rank;
    traceback->open = false;
    if (contains_any(text, launchers))
        return 1;
    text_copy_until(exception, sizeof exception, text, "\r\n");
    if (rank >= 0)
        snprintf(what, sizeof what, "rank %d raised %s%s%s", rank, exception, *place ? ", at " : "",
                 place);
    else
        snprintf(what, sizeof what, "a rank that the log does not name raised %s%s%s", exception,
                 *place ? ", at " : "", place);
    bool follows = contains_any(text, consequences);
    return log_messages_add(job, traceback->speaker, follows ? SAID_NOTE : SAID_ERROR, "Python",
                            what, follows ? todo_consequence : todo_raised);
}

int log_python_line(struct log_job *job, const char *text, size_t bytes)
{
    const char *begin = strstr(text, "Traceback (most recent call last)");
    struct log_speaker speaker = log_speaker_of(text, bytes);
    if (begin)
        return begin_traceback(job, speaker, (size_t)(begin - text));
    struct log_traceback *traceback = find_traceback(job, speaker);
    const char *file = strstr(text, "  File \"");
    if (!traceback && (traceback = find_bare(job, speaker)) && file) {
        traceback->bare = true;
        traceback->column = (size_t)(file - text);
    }
    if (!traceback || bytes <= traceback->column)
        return 0;
    if (take_frame(traceback, text))
        return 1;
    text += traceback->column;
    return is_exception(text) ? end_traceback(job, traceback, text) : 0;
}
