/* log_elastic.c: torchelastic's report of the rank that failed first, at the end of a job's log. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_messages.h"

enum { EXIT_NONE = INT32_MIN };

struct log_elastic {
    bool open, seen;
    int rank, exit, local_rank, local_exit; /* local_*: of "failed (exitcode: ...)" */
    char host[96];
};

static const struct exit_meaning {
    int exit;
    const char *text, *todo;
} exit_meanings[] = {
    {-9, "was killed by SIGKILL",
     "SIGKILL comes from outside: as a rule from the kernel, which ran out of host memory (dmesg), "
     "or "
     "from the scheduler."},
    {-6, "ended by SIGABRT",
     "PyTorch's watchdog and uncaught C++ exceptions end a process so: what it printed before "
     "counts."},
    {-7, "was killed by SIGBUS",
     "As a rule /dev/shm is full: docker run --shm-size or "
     "--ipc=host."},
    {-11, "was killed by SIGSEGV",
     "It crashed: look at its core dump, or run with PYTHONFAULTHANDLER=1."},
    {-15, "was ended by SIGTERM",
     "Somebody else ended it: the scheduler, or the launcher of "
     "another node. Look for what came before."},
    {1, "exited with status 1",
     "As a rule an exception: its traceback is above in the log, or in that rank's own file."},
};

static void describe_exit(char *text, size_t bytes, const char **todo, int exit)
{
    for (size_t i = 0; i < sizeof exit_meanings / sizeof *exit_meanings; i++)
        if (exit_meanings[i].exit == exit) {
            snprintf(text, bytes, "%s", exit_meanings[i].text);
            *todo = exit_meanings[i].todo;
            return;
        }
    *todo = "Look at what that rank printed last.";
    if (exit < 0)
        snprintf(text, bytes, "was killed by signal %d", -exit);
    else
        snprintf(text, bytes, "exited with status %d", exit);
}

static int report_first(struct log_job *job, struct log_elastic *elastic)
{
    char what[MESSAGE_BYTES], ended[64];
    const char *todo;
    elastic->open = false;
    if (elastic->rank < 0 || elastic->exit == EXIT_NONE)
        return 0;
    elastic->seen = true;
    describe_exit(ended, sizeof ended, &todo, elastic->exit);
    snprintf(what, sizeof what, "rank %d failed first: it %s%s%s", elastic->rank, ended,
             *elastic->host ? ", on " : "", elastic->host);
    return log_messages_add(job, (struct log_speaker){.rank = elastic->rank}, SAID_ERROR,
                            "torchelastic", what, todo);
}

/* The value behind "  exitcode  : ", or NULL. */
static const char *field_value(const char *text, const char *name)
{
    const char *found = strstr(text, name);
    if (!found)
        return NULL;
    found += strlen(name);
    while (*found == ' ')
        found++;
    if (*found != ':')
        return NULL;
    found++;
    while (*found == ' ')
        found++;
    return found;
}

static int take_field(struct log_job *job, struct log_elastic *elastic, const char *text)
{
    const char *value;
    if ((value = field_value(text, "  rank")) && isdigit((unsigned char)*value))
        elastic->rank = atoi(value);
    else if ((value = field_value(text, "exitcode")))
        elastic->exit = atoi(value);
    else if ((value = field_value(text, "  host")))
        text_copy_until(elastic->host, sizeof elastic->host, value, " \r\n");
    else if (field_value(text, "traceback") || strstr(text, "====="))
        return report_first(job, elastic);
    return 1;
}

int log_elastic_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_elastic *elastic = job->elastic;
    const char *failed = strstr(text, "failed (exitcode: ");
    bool begins = strstr(text, "Root Cause (first observed failure)") != NULL;
    (void)bytes;
    if (!begins && !failed)
        return elastic && elastic->open ? take_field(job, elastic, text) : 0;
    if (!elastic && !(elastic = job->elastic = calloc(1, sizeof *elastic)))
        return -1;
    if (begins) {
        elastic->open = true;
        elastic->rank = -1;
        elastic->exit = EXIT_NONE;
        *elastic->host = '\0';
    } else if (!elastic->local_exit) {
        elastic->local_exit = atoi(failed + strlen("failed (exitcode: "));
        elastic->local_rank = (int)text_number_behind(failed, "local_rank:");
    }
    return 1;
}

int log_elastic_end(struct log_job *job)
{
    struct log_elastic *elastic = job->elastic;
    int result = 0;
    if (elastic && !elastic->seen && elastic->local_exit) {
        char what[MESSAGE_BYTES], ended[64];
        const char *todo;
        describe_exit(ended, sizeof ended, &todo, elastic->local_exit);
        snprintf(what, sizeof what, "the process of local rank %d of a node %s",
                 elastic->local_rank, ended);
        result = log_messages_add(job, (struct log_speaker){.rank = -1}, SAID_ERROR, "torchelastic",
                                  what, todo);
    }
    free(elastic);
    job->elastic = NULL;
    return result < 0 ? -1 : 0;
}
