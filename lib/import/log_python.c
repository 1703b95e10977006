/* log_python.c: Python tracebacks in a job's log: which rank raised what, and where.
 *
 * Lines of several ranks are mixed, so each writer has a traceback of its own. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_messages.h"
#include "lib/import/log_phrases.h"
#include "lib/import/scan.h"

enum { TRACEBACKS_MAX = 64, PLACE_BYTES = 200, NAME_BYTES = 48 };

struct log_traceback {
    struct log_speaker speaker;
    size_t column;              /* where "Traceback" stood: what is before it is prefix */
    char place[PLACE_BYTES];    /* "train.py:120 (step)" of the last frame of the user's */
    char anywhere[PLACE_BYTES]; /* of the last frame */
    char name[NAME_BYTES];      /* "EngineCore_DP1", where it is no rank; "" */
    bool open;
    bool bare; /* its frames have no prefix, though its first line has: a logger printed it */
};

struct log_tracebacks {
    struct log_traceback traceback[TRACEBACKS_MAX];
    struct log_traceback *latest; /* the one that began last */
    uint32_t count, oldest;
    bool is_spawned; /* the next traceback is that of this process of torch.multiprocessing's */
    int64_t spawned;
};

/* What a launcher raises when its ranks have failed, or it was ended itself. */
static const char *const launchers[] = {"ChildFailedError", "SignalException", "CalledProcessError",
                                        "ProcessRaisedException", NULL};
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
    "Worker failed with error",
    "worker died unexpectedly",
    NULL,
};
/* Exceptions that only say that somebody waited, where `place` is in the last frame's. */
static const struct waiting_exception {
    const char *exception, *place;
} waiting_exceptions[] = {
    {"TimeoutError", "shm_broadcast.py"},
    {"TimeoutError", "(dequeue)"},
    {"RPC call to ", ""},
    {"Timed out waiting ", ""},
    {"Timed out initializing process group in store based barrier", ""},
    {"Timeout waiting for key", ""},
    {"wait timeout after ", ""},
    {"Engine core initialization failed", ""},
    {"GetTimeoutError", ""},
};
/* Processes that give workers their work: none is a rank. */
static const char *const managers[] = {"Engine",     "APIServer", "Executor", "Driver",
                                       "TaskRunner", "main_task", "raylet",   NULL};

static const char python_begin[] = "Traceback (most recent call last)";
static const char todo_raised[] =
    "Fix what it raised; the other ranks then only waited for this one. Let an exception end the "
    "whole job, and let all ranks take the same way out.";
static const char todo_manager[] =
    "This process is no rank: as a rule one of its workers failed or hangs. See what the workers "
    "said before.";
static const char todo_waited[] =
    "It only waited: find out which rank it waited for, and what that one did. A worker that hangs "
    "or died is the cause.";
static const char todo_consequence[] =
    "As a rule a consequence: look for the rank that failed first.";

static struct log_traceback *find_traceback(struct log_job *job, struct log_speaker speaker)
{
    struct log_tracebacks *all = job->state[LOG_PYTHON];
    for (uint32_t i = 0; i < all->count; i++)
        if (all->traceback[i].open && all->traceback[i].speaker.rank == speaker.rank &&
            all->traceback[i].speaker.source == speaker.source)
            return &all->traceback[i];
    return NULL;
}

static int begin_traceback(struct log_job *job, struct log_speaker speaker, const char *text,
                           size_t bytes)
{
    size_t column = (size_t)(scan_find(text, python_begin) - text);
    struct log_tracebacks *all = job->state[LOG_PYTHON];
    struct log_traceback *traceback = find_traceback(job, speaker);
    if (!traceback && all->count < TRACEBACKS_MAX)
        traceback = &all->traceback[all->count++];
    else if (!traceback)
        traceback = &all->traceback[all->oldest++ % TRACEBACKS_MAX];
    *traceback = (struct log_traceback){.speaker = speaker, .column = column, .open = true};
    log_speaker_name(text, bytes, traceback->name, sizeof traceback->name);
    if (all->is_spawned && !*traceback->name)
        snprintf(traceback->name, sizeof traceback->name, "process %lld of mp.spawn",
                 (long long)all->spawned);
    all->is_spawned = false;
    all->latest = traceback;
    return 1;
}

/* The one that began last, where a line without any prefix must belong to it. */
static struct log_traceback *find_bare(struct log_job *job, struct log_speaker speaker)
{
    const struct log_tracebacks *all = job->state[LOG_PYTHON];
    struct log_traceback *latest = all->latest;
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
    const char *file = scan_find(text, "File \""), *end = file ? strchr(file + 6, '"') : NULL;
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
    bool is_whole = text[name] == ':' || !text[name] || !text[name + 1];
    return isupper((unsigned char)*last) && is_whole;
}

static bool contains_any(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strstr(text, *words))
            return true;
    return false;
}

static bool is_waiting_exception(const char *exception, const char *place)
{
    for (size_t i = 0; i < sizeof waiting_exceptions / sizeof *waiting_exceptions; i++)
        if (strstr(exception, waiting_exceptions[i].exception) &&
            strstr(place, waiting_exceptions[i].place))
            return true;
    return false;
}

/* How much the exception counts, and what to do about it. */
static int judge_exception(const struct log_traceback *traceback, const char *exception,
                           const char **todo)
{
    struct scanned found;
    const struct log_phrase *phrase = log_phrase_find(exception, &found);
    *todo = phrase ? phrase->todo : todo_raised;
    if (is_waiting_exception(exception, traceback->anywhere)) {
        *todo = todo_waited;
        return LOG_SAID_WAITED;
    }
    if (contains_any(exception, consequences)) {
        *todo = todo_consequence;
        return SAID_NOTE;
    }
    if (traceback->speaker.rank >= 0 || !contains_any(traceback->name, managers))
        return SAID_ERROR;
    *todo = phrase ? phrase->todo : todo_manager;
    return LOG_SAID_ENDED;
}

static int end_traceback(struct log_job *job, struct log_traceback *traceback, const char *text)
{
    char what[MESSAGE_BYTES], exception[MESSAGE_BYTES / 2], name[2 * NAME_BYTES];
    const char *place = *traceback->place ? traceback->place : traceback->anywhere, *todo;
    int rank = traceback->speaker.rank >= 0 ? traceback->speaker.rank : job->file_rank;
    traceback->open = false;
    if (contains_any(text, launchers))
        return 1;
    text_copy_until(exception, sizeof exception, text, "\r\n");
    snprintf(name, sizeof name, "%s",
             *traceback->name ? traceback->name : "a rank that the log does not name");
    if (rank >= 0)
        snprintf(name, sizeof name, "rank %d", rank);
    int how = judge_exception(traceback, exception, &todo);
    if (rank < 0 && contains_any(traceback->name, managers))
        snprintf(name, sizeof name, "%s, which is no rank,", traceback->name);
    snprintf(what, sizeof what, "%s %s%s%s%s", name,
             how == LOG_SAID_WAITED ? "only waited: it raised " : "raised ", exception,
             *place ? ", at " : "", place);
    return log_messages_add(job, traceback->speaker, how, "Python", what, todo);
}

static int read_python_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_tracebacks *all = job->state[LOG_PYTHON];
    bool begins = scan_find(text, python_begin);
    struct scanned found;
    if (scan(text, "Process {i:number} terminated with the following error", &found)) {
        all->spawned = scanned_number(&found, "number", 0);
        all->is_spawned = true;
    }
    if (!begins && !all->count)
        return 0;
    struct log_speaker speaker = log_speaker_of(text, bytes);
    if (begins)
        return begin_traceback(job, speaker, text, bytes);
    struct log_traceback *traceback = find_traceback(job, speaker);
    const char *file = scan_find(text, "  File \"");
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

const struct log_reader log_python = {sizeof(struct log_tracebacks), read_python_line, NULL};
