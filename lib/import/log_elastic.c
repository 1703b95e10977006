/* log_elastic.c: torchelastic's tables of processes that failed, at the end of a job's log. Each
 * node has one, and names the failure that it saw first; the one that was first by its time
 * counts. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_ends.h"
#include "lib/import/log_line.h"
#include "lib/import/log_messages.h"
#include "lib/import/scan.h"

enum { ROW_BYTES = 1024, HOST_BYTES = 96, LINES_BETWEEN = 8, TERMINATED = -15 };

struct elastic_failure {
    bool is_known;
    int rank, exit;
    uint64_t time_ns; /* 0: not said */
    char host[HOST_BYTES];
};

struct log_elastic {
    int open; /* in a table: lines that may still belong to it */
    struct elastic_failure current, first;
    struct elastic_failure named; /* as the root cause, by the first table that has one */
    bool is_root;                 /* current: behind "Root Cause" */
    int local_rank, local_exit;   /* of "failed (exitcode: ...)" */
};

/* Tables lose their blanks where people post them. */
static void squeeze(const char *text, char *to)
{
    size_t used = 0;
    for (; *text && used + 1 < ROW_BYTES; text++)
        if (!isspace((unsigned char)*text))
            to[used++] = *text;
    to[used] = '\0';
}

/* What is behind "rank:", not "local_rank:". */
static const char *value_behind(const char *row, const char *name)
{
    const char *found = row;
    while ((found = strstr(found, name)) && found > row && found[-1] == '_')
        found++;
    return found ? found + strlen(name) : NULL;
}

/* A process that the launcher ended itself is nobody's cause. */
static bool is_earlier_failure(const struct elastic_failure *one,
                               const struct elastic_failure *other)
{
    if (!other->is_known)
        return true;
    if ((one->exit == TERMINATED) != (other->exit == TERMINATED))
        return other->exit == TERMINATED;
    return one->time_ns && other->time_ns && one->time_ns < other->time_ns;
}

static void end_failure(struct log_elastic *elastic)
{
    struct elastic_failure *current = &elastic->current;
    current->is_known = true;
    if (elastic->is_root && !elastic->named.is_known)
        elastic->named = *current;
    bool is_same = elastic->is_root && elastic->first.is_known &&
                   current->time_ns == elastic->first.time_ns; /* it is the better one */
    if (is_earlier_failure(current, &elastic->first) || (is_same && current->exit != TERMINATED))
        elastic->first = *current;
    *current = (struct elastic_failure){.rank = -1};
}

/* The fields of a row; all of them are on one line where the line breaks are lost as well. */
static bool take_failure_row(struct log_elastic *elastic, const char *row)
{
    struct elastic_failure *current = &elastic->current;
    const char *time = value_behind(row, "time:"), *host = value_behind(row, "host:");
    const char *rank = value_behind(row, "rank:"), *exit = value_behind(row, "exitcode:");
    if (time) {
        *current = (struct elastic_failure){.rank = -1};
        current->time_ns = log_prefix_time(time, strlen(time));
    }
    if (host) {
        const char *end = strstr(host, "rank:");
        size_t length = end ? (size_t)(end - host) : strcspn(host, ",");
        snprintf(current->host, sizeof current->host, "%.*s",
                 (int)(length < HOST_BYTES ? length : HOST_BYTES - 1), host);
    }
    if (rank && isdigit((unsigned char)*rank))
        current->rank = atoi(rank);
    if (exit && current->rank >= 0) {
        current->exit = atoi(exit);
        end_failure(elastic);
    }
    return time || host || rank || exit;
}

static int read_elastic_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_elastic *elastic = job->state[LOG_ELASTIC];
    struct scanned failed;
    char row[ROW_BYTES];
    (void)bytes;
    const char *root = scan_find(text, "first observed failure");
    if (!root)
        root = scan_find(text, "firstobservedfailure");
    if (root || scan_find(text, "Failures:")) {
        elastic->open = LINES_BETWEEN;
        elastic->is_root = root != NULL;
        elastic->current = (struct elastic_failure){.rank = -1};
        squeeze(root ? root : scan_find(text, "Failures:"), row);
        take_failure_row(elastic, row);
        return root != NULL;
    }
    if (elastic->open) {
        squeeze(text, row);
        elastic->open = take_failure_row(elastic, row) ? LINES_BETWEEN : elastic->open - 1;
        return elastic->open == LINES_BETWEEN;
    }
    if (!scan(text, "failed (exitcode: {i:exit}{?{r:}local_rank:{i:local_rank}}", &failed))
        return 0;
    if (!elastic->local_exit) {
        elastic->local_exit = (int)scanned_number(&failed, "exit", 0);
        elastic->local_rank = (int)scanned_number(&failed, "local_rank", -1);
    }
    return 1;
}

static int report_first(struct log_job *job, const struct log_elastic *elastic)
{
    char what[MESSAGE_BYTES], ended[64], other[128] = "";
    const struct elastic_failure *first = &elastic->first, *named = &elastic->named;
    const char *todo;
    int how = log_end_describe(first->exit, ended, sizeof ended, &todo);
    if (named->is_known && named->rank != first->rank && named->time_ns > first->time_ns)
        snprintf(other, sizeof other,
                 "; rank %d, which torchelastic calls the first, ended %.0f s "
                 "later",
                 named->rank, (double)(named->time_ns - first->time_ns) / 1e9);
    snprintf(what, sizeof what, "rank %d failed first: it %s%s%s%s", first->rank, ended,
             *first->host ? ", on " : "", first->host, other);
    return log_messages_add(job, (struct log_speaker){.rank = first->rank}, how, "torchelastic",
                            what, todo);
}

static int report_local(struct log_job *job, const struct log_elastic *elastic)
{
    char what[MESSAGE_BYTES], ended[64];
    const char *todo;
    int how = log_end_describe(elastic->local_exit, ended, sizeof ended, &todo);
    snprintf(what, sizeof what, "the process of local rank %d of a node %s", elastic->local_rank,
             ended);
    return log_messages_add(job, LOG_NOBODY, how, "torchelastic", what, todo);
}

static int end_elastic(struct log_job *job)
{
    const struct log_elastic *elastic = job->state[LOG_ELASTIC];
    int result = 0;
    if (elastic->first.is_known)
        result = report_first(job, elastic);
    else if (elastic->local_exit)
        result = report_local(job, elastic);
    return result < 0 ? -1 : 0;
}

const struct log_reader log_elastic = {sizeof(struct log_elastic), read_elastic_line, end_elastic};
